// The width that an element has on the page.

import { useLayoutEffect, useRef, useState } from "../vendor/hooks.js";

/** A ref to put on an element, and its width in whole pixels; 0 before it is known. */
export function useWidth() {
  const ref = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.floor(ref.current?.clientWidth ?? 0));
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    measure();
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
