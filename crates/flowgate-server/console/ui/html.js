// Preact with htm: `html` makes elements of a template. Texts in it are text nodes by construction.

import htm from "../vendor/htm.js";
import { Component, h } from "../vendor/preact.js";

export const html = htm.bind(h);

/** A component that is drawn anew only when one of its properties is another. */
export function memo(draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const names = new Set([...Object.keys(next), ...Object.keys(this.props)]);
      return [...names].some((name) => !Object.is(next[name], this.props[name]));
    }

    render(props) {
      return draw(props);
    }
  };
}
