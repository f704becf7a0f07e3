// About how wide a text of a chart is, without asking the browser to draw it.

/** The width of a text at 11 px. */
export const textWidth = (text) => Array.from(text).reduce((sum, c) => sum + (c.codePointAt(0) > 0x2e80 ? 11.2 : 6.2), 0);

/** Words in bold are wider by so much. */
export const BOLD = 1.12;
