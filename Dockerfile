# The service on CPUs: docker build -t chainroute . && docker run --rm -p 127.0.0.1:8000:8000 chainroute
FROM python:3.11-slim

# torch for CPUs alone; the default index would bring gigabytes for GPUs.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY chainroute chainroute
COPY chainroute_command chainroute_command
RUN pip install --no-cache-dir -c constraints.txt --no-deps --index-url "$TORCH_INDEX" torch \
    && pip install --no-cache-dir -c constraints.txt '.[serve,neural,large]' \
    && rm -rf /build

RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin chainroute
USER 10001
WORKDIR /tmp
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/v1/health', timeout=4)"]
ENTRYPOINT ["chainroute", "serve", "--host", "0.0.0.0", "--port", "8000"]
