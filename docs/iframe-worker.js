// The search of the site runs in a worker, which browsers refuse to pages from a disk. There it runs in a frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #frame = document.createElement("iframe");

    constructor(address) {
      super();
      this.#frame.hidden = true;
      this.#frame.srcdoc = "<!doctype html><title>Search</title>";
      this.#frame.addEventListener("load", () => this.#start(address), { once: true });
      document.body.append(this.#frame);
    }

    #start(address) {
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = address;
      script.addEventListener("load", () => {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        waiting.forEach((data) => this.postMessage(data));
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
