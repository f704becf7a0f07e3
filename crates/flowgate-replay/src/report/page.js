"use strict";
// Charts are drawn already; this shows their numbers to whoever points at them or walks along with the arrow keys.
(() => {
  const tip = document.getElementById("tip");
  let shown = null;

  const hide = () => {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.style.visibility = "hidden";
  };

  const show = (mark) => {
    if (mark !== shown) {
      hide();
      shown = mark;
      mark.classList.add("on");
      tip.textContent = mark.dataset.tip;
    }
    const at = mark.querySelector(".band").getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const middle = at.left + at.width / 2 - size.width / 2;
    const left = Math.max(8, Math.min(middle, document.documentElement.clientWidth - size.width - 8));
    const above = at.top - size.height - 8;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(above > 4 ? above : at.top + 8)}px)`;
    tip.style.visibility = "visible";
  };

  for (const chart of document.querySelectorAll("svg[data-chart]")) {
    const marks = [...chart.querySelectorAll("g[data-tip]")];
    // Browsers would show these, too.
    for (const mark of marks) mark.querySelector("title")?.remove();
    if (!marks.length) continue;
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("g[data-tip]");
      if (mark) show(mark); else hide();
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (event) => {
      const now = marks.indexOf(shown);
      const steps = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: marks.length - 1 };
      if (event.key === "Escape") hide();
      if (!(event.key in steps)) return;
      event.preventDefault();
      show(marks[Math.max(0, Math.min(steps[event.key], marks.length - 1))]);
    });
  }
  addEventListener("scroll", hide, { passive: true, capture: true });
})();
