// Who has made a change: the kind of right and the address. Tokens have no names.

import { clean } from "../lib/text.js";
import { w } from "./words.js";

/** The rights that have words; others are shown as the server calls them. */
const RIGHTS = new Map([["admin token", "author.token"], ["file", "author.file"]]);

/** `admin token, 192.0.2.1`. */
export const authorWords = ({ by, from }) => `${RIGHTS.has(by) ? w(RIGHTS.get(by)) : clean(by)}${from ? `${w("listComma")}${clean(from)}` : ""}`;
