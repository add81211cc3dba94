"""Counts of a program's text: launches, waits, bytes and operations, in loops, branches and calls."""

from jaxbandit.experiments.bench.hlo import loops_of

PROGRAM = """
fused (p0: f64[100], p1: s32[8]) -> f64[8] {
  p0 = f64[100]{0} parameter(0)
  p1 = s32[8]{0} parameter(1)
  found = f64[8]{0} gather(p0, p1), offset_dims={}
  ROOT sum = f64[8]{0} add(found, found)
}
one (x: f64[8]) -> f64[8] {
  x = f64[8]{0} parameter(0)
  ROOT a = f64[8]{0} multiply(x, x)
}
two (x: f64[8]) -> f64[8] {
  x = f64[8]{0} parameter(0)
  b = f64[8]{0} multiply(x, x)
  ROOT c = f64[8]{0} copy(b)
}
inner_body (t: (f64[100], s32[8])) -> (f64[100], s32[8]) {
  t = (f64[100]{0}, s32[8]{0}) parameter(0)
  table = f64[100]{0} get-tuple-element(t), index=0
  where = s32[8]{0} get-tuple-element(t), index=1
  f = f64[8]{0} fusion(table, where), kind=kLoop, calls=fused
  ROOT r = (f64[100]{0}, s32[8]{0}) tuple(table, where)
}
yes (t: (f64[100], s32[8])) -> pred[] {
  t = (f64[100]{0}, s32[8]{0}) parameter(0)
  ROOT c = pred[] constant(true)
}
outer_body (t: (f64[100], s32[8])) -> (f64[100], s32[8]) {
  t = (f64[100]{0}, s32[8]{0}) parameter(0)
  p = pred[] constant(true)
  x = f64[8]{0} constant({...})
  choice = f64[8]{0} conditional(p, x, x), true_computation=one, false_computation=two
  ROOT w = (f64[100]{0}, s32[8]{0}) while(t), condition=yes, body=inner_body, backend_config={"known_trip_count":{"n":"5"}}
}
ENTRY main (t: (f64[100], s32[8])) -> (f64[100], s32[8]) {
  t = (f64[100]{0}, s32[8]{0}) parameter(0)
  ROOT w = (f64[100]{0}, s32[8]{0}) while(t), condition=yes, body=outer_body
}
"""


def test_loops_are_counted_from_the_inside_out():
    outer, inner = loops_of(PROGRAM)
    assert (inner.depth, inner.trips, inner.launches, inner.syncs, inner.inner) == (1, 5, 1, 0, 0)
    # Eight entries of the table are read, not a hundred; eight places, and eight sums written.
    assert inner.bytes == 8 * 8 + 8 * 4 + 8 * 8
    assert inner.float64 == 8
    # The longer side of the branch, for which the host waits, and five turns of the loop inside.
    assert (outer.depth, outer.trips, outer.inner) == (0, None, 1)
    assert outer.launches == 2 + 5
    assert outer.syncs == 1
    assert outer.float64 == 8 + 5 * 8


SLICES = """
fused (p0: f32[100], p1: f32[4,8], p2: f32[8]) -> (f32[8], f32[4,8]) {
  p0 = f32[100]{0} parameter(0)
  twice = f32[100]{0} add(p0, p0)
  part = f32[8]{0} slice(twice), slice={[0:8]}
  p1 = f32[4,8]{1,0} parameter(1)
  row = f32[1,8]{1,0} bitcast(part)
  zero = s32[] constant(0)
  changed = f32[4,8]{1,0} dynamic-update-slice(p1, row, zero, zero)
  p2 = f32[8]{0} parameter(2)
  ROOT both = (f32[8]{0}, f32[4,8]{1,0}) tuple(p2, changed)
}
body (t: (f32[100], f32[4,8], f32[8])) -> (f32[100], f32[4,8], f32[8]) {
  t = (f32[100]{0}, f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  a = f32[100]{0} get-tuple-element(t), index=0
  b = f32[4,8]{1,0} get-tuple-element(t), index=1
  c = f32[8]{0} get-tuple-element(t), index=2
  f = (f32[8]{0}, f32[4,8]{1,0}) fusion(a, b, c), kind=kLoop, calls=fused
  ROOT r = (f32[100]{0}, f32[4,8]{1,0}, f32[8]{0}) tuple(a, b, c)
}
yes (t: (f32[100], f32[4,8], f32[8])) -> pred[] {
  t = (f32[100]{0}, f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  ROOT c = pred[] constant(true)
}
ENTRY main (t: (f32[100], f32[4,8], f32[8])) -> (f32[100], f32[4,8], f32[8]) {
  t = (f32[100]{0}, f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  ROOT w = (f32[100]{0}, f32[4,8]{1,0}, f32[8]{0}) while(t), condition=yes, body=body
}
"""


def test_bytes_are_those_of_the_entries_that_results_are_made_of():
    (only,) = loops_of(SLICES)
    # Eight of a hundred entries are read, one row of a table is written in place, eight entries are copied.
    assert only.bytes == 4 * (8 + 8 + 8 + 8)


SCATTER = """
fused (p0: f32[100], p1: s32[8], p2: f32[8]) -> f32[100] {
  p0 = f32[100]{0} parameter(0)
  p1 = s32[8]{0} parameter(1)
  p2 = f32[8]{0} parameter(2)
  ROOT changed = f32[100]{0} scatter(p0, p1, p2), to_apply=last
}
body (t: (f32[100], s32[8], f32[8])) -> (f32[100], s32[8], f32[8]) {
  t = (f32[100]{0}, s32[8]{0}, f32[8]{0}) parameter(0)
  a = f32[100]{0} get-tuple-element(t), index=0
  b = s32[8]{0} get-tuple-element(t), index=1
  c = f32[8]{0} get-tuple-element(t), index=2
  f = f32[100]{0} fusion(a, b, c), kind=kInput, calls=fused
  ROOT r = (f32[100]{0}, s32[8]{0}, f32[8]{0}) tuple(f, b, c)
}
yes (t: (f32[100], s32[8], f32[8])) -> pred[] {
  t = (f32[100]{0}, s32[8]{0}, f32[8]{0}) parameter(0)
  ROOT c = pred[] constant(true)
}
ENTRY main (t: (f32[100], s32[8], f32[8])) -> (f32[100], s32[8], f32[8]) {
  t = (f32[100]{0}, s32[8]{0}, f32[8]{0}) parameter(0)
  ROOT w = (f32[100]{0}, s32[8]{0}, f32[8]{0}) while(t), condition=yes, body=body
}
"""


def test_entries_that_a_scatter_leaves_are_not_moved():
    (only,) = loops_of(SCATTER)
    # Eight places and eight numbers are read, eight are written.
    assert only.bytes == 4 * (8 + 8 + 8)
