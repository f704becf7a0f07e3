// The words of marks cover neither each other nor the poles of others, and close events keep words of their own.

import assert from "node:assert/strict";
import test from "node:test";
import { gather, placeLabels } from "../../../crates/flowgate-server/console/lib/mark_labels.js";

const ROOM = { from: 40, to: 1000, rows: 4, taken: [40, 150] };

/** Places as intervals with their poles, checked against each other. */
function check(marks, room = ROOM) {
  const placed = placeLabels(marks, room);
  const shown = placed.flatMap((place, i) => (place ? [{ ...place, to: place.from + marks[i].wide, x: marks[i].x }] : []));
  for (const one of shown) {
    assert.ok(one.from >= room.from && one.to <= room.to, "within the drawing");
    if (one.row === 0) assert.ok(one.from > room.taken[1] || one.to < room.taken[0], "beside the name of the panel");
    for (const other of shown) {
      if (one === other) continue;
      if (one.row === other.row) assert.ok(one.to < other.from || other.to < one.from, "beside each other");
      if (other.row >= one.row) assert.ok(other.x < one.from || other.x > one.to, "no pole through words");
    }
  }
  return placed;
}

test("one event has its words beside it", () => {
  assert.deepEqual(check([{ x: 500, wide: 80 }]), [{ row: 0, from: 414, isLeft: true }]);
  assert.deepEqual(check([{ x: 60, wide: 80 }]), [{ row: 1, from: 66, isLeft: false }]);
  assert.deepEqual(check([{ x: 200, wide: 80 }]), [{ row: 0, from: 206, isLeft: false }]);
});

test("seven close events amid a chart keep their own words", () => {
  const placed = check([500, 508, 520, 531, 540, 552, 561].map((x, i) => ({ x, wide: 60 + 20 * i })));
  assert.ok(placed.every(Boolean));
});

test("three close events keep their own words, in rows", () => {
  for (const x of [60, 200, 500, 960, 990]) {
    const placed = check([{ x, wide: 90 }, { x: x + 12, wide: 120 }, { x: x + 25 > 1000 ? 1000 : x + 25, wide: 60 }]);
    assert.ok(placed.every(Boolean), `${x}`);
  }
});

test("at the right edge the newest events have words", () => {
  const placed = check([940, 950, 960, 970, 980, 990].map((x) => ({ x, wide: 90 })));
  assert.deepEqual(placed.map(Boolean), [false, false, true, true, true, true]);
});

test("where there is no room a mark has no words, and nothing overlaps", () => {
  const marks = Array.from({ length: 40 }, (_, i) => ({ x: 300 + i * 4, wide: 100 }));
  const placed = check(marks);
  assert.ok(placed.some(Boolean) && placed.some((place) => place === null));
  check(Array.from({ length: 12 }, (_, i) => ({ x: 60 + i * 80, wide: 150 })));
});

test("close events of one kind are told with their number, others apart", () => {
  const marks = [[10, "ban"], [12, "lift"], [14, "ban"], [15, "rules"], [90, "ban"]].map(([at, kind]) => ({ at, kind }));
  assert.deepEqual(gather(marks, 5).map((group) => [group.at, group.kind, group.members.length]), [[10, "ban", 2], [12, "lift", 1], [15, "rules", 1], [90, "ban", 1]]);
});
