// Scales of charts: ticks of numbers and of times, stacked values, and which bar is at a place. Pure.

/** At least as large as the value, and a round number: 0, 1, 2, 3, 4, 5, 6, 8, 10, 20 … */
export function niceMaximum(value: number): number {
  if (value <= 0) return 0
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = [1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value * (1 - 1e-9)) ?? 10
  return factor * power
}

/** Zero, the maximum, and what lies between, without fractions of counts. */
export function ticksOf(maximum: number, isWhole: boolean): number[] {
  if (maximum <= 0) return [0]
  if (isWhole && maximum <= 3) return Array.from({ length: Math.round(maximum) + 1 }, (_, at) => at)
  const parts = isWhole ? ([4, 3, 2, 5].find((each) => Number.isInteger(maximum / each)) ?? 2) : 4
  return Array.from({ length: parts + 1 }, (_, at) => (maximum * at) / parts)
}

/** Which of the bars have a label, so that labels of this width do not touch. */
export function labelled(count: number, width: number, labelWidth: number): number[] {
  if (count === 0) return []
  const every = Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)))
  return Array.from({ length: Math.ceil(count / every) }, (_, at) => at * every)
}

export function placeOf(x: number, width: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor((x / Math.max(1, width)) * count)))
}

/** The path of a line, interrupted where there is no value. A value between gaps is a short dash, so that it is visible. */
export function linePath(
  values: readonly (number | null)[],
  xOf: (at: number) => number,
  yOf: (value: number) => number,
  dash: number,
): string {
  let path = ''
  for (const [at, value] of values.entries()) {
    if (value === null) continue
    const before = values[at - 1] ?? null
    const after = values[at + 1] ?? null
    const [x, y] = [round(xOf(at)), round(yOf(value))]
    if (before === null && after === null) path += `M${round(x - dash / 2)},${y}H${round(x + dash / 2)}`
    else path += `${before === null ? 'M' : 'L'}${x},${y}`
  }
  return path
}

export function round(value: number): number {
  return Math.round(value * 10) / 10
}
