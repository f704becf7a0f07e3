// Networks such as 203.0.113.0/24: how wide they are, and what they hold.

/** The bits of an address from the front, as a text of 0 and 1; null: not an address. */
function bits(address) {
  const v4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address);
  if (v4) {
    const bytes = v4.slice(1).map(Number);
    return bytes.every((byte) => byte < 256) ? bytes.map((byte) => byte.toString(2).padStart(8, "0")).join("") : null;
  }
  // The last four bytes of an IPv6 address may be written as an IPv4 address.
  const mapped = /^(.*:)(\d{1,3}(?:\.\d{1,3}){3})$/.exec(address);
  if (mapped) {
    const tail = bits(mapped[2]);
    return tail && bits(`${mapped[1]}${Number.parseInt(tail.slice(0, 16), 2).toString(16)}:${Number.parseInt(tail.slice(16), 2).toString(16)}`);
  }
  if (!/^[0-9a-f:]+$/i.test(address) || (address.match(/::/g) ?? []).length > 1) return null;
  const [head, tail] = address.split("::");
  const words = (text) => (text ? text.split(":") : []);
  const missing = tail === undefined ? 0 : 8 - words(head).length - words(tail).length;
  const all = [...words(head), ...Array(Math.max(0, missing)).fill("0"), ...words(tail ?? "")];
  if (all.length !== 8 || all.some((word) => !/^[0-9a-f]{1,4}$/i.test(word))) return null;
  return all.map((word) => Number.parseInt(word, 16).toString(2).padStart(16, "0")).join("");
}

/** `{ version: 4 | 6, prefix, addresses }` of a network or an address; null: it is neither. */
export function network(text) {
  const [address, length, more] = text.trim().split("/");
  const found = bits(address);
  if (!found || more !== undefined || (length !== undefined && !/^\d{1,3}$/.test(length))) return null;
  const prefix = length === undefined ? found.length : Number(length);
  if (prefix > found.length) return null;
  return { version: found.length === 32 ? 4 : 6, prefix, addresses: 2 ** (found.length - prefix), bits: found.slice(0, prefix) };
}

/** True if a ban of this network deserves a second look: wider than /16, for IPv6 /32. */
export const isWide = (found) => found.prefix < (found.version === 4 ? 16 : 32);

/** True if `flowgate ban` wants `--wide` for it: wider than /8, for IPv6 /16. */
export const needsWide = (found) => found.prefix < (found.version === 4 ? 8 : 16);

/** True if the first network holds the second. */
export const holds = (outer, inner) => outer.version === inner.version && inner.bits.startsWith(outer.bits);
