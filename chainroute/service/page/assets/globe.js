/** Lengths on the globe. */

const RAD = Math.PI / 180;
const RADIUS = 6_371_008.8; // metres, of the sphere that the library measures on

/** Metres along the globe between two places in degrees. */
export function alongGlobe(a, b) {
  const half = (angle) => Math.sin((angle * RAD) / 2) ** 2;
  const chord = half(b.y - a.y) + Math.cos(a.y * RAD) * Math.cos(b.y * RAD) * half(b.x - a.x);
  return 2 * RADIUS * Math.asin(Math.sqrt(chord));
}
