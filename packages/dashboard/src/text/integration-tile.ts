// The letters and the colour that stand for an integration. We draw them ourselves: logos belong to their companies. Pure.

/** White text has a contrast of at least 4.5:1 on each of these; a test computes it. */
export const TILE_COLORS = [
  '#1864ab',
  '#5f3dc4',
  '#862e9c',
  '#a61e4d',
  '#c92a2a',
  '#a04000',
  '#7a5200',
  '#2b6e1f',
  '#087f5b',
  '#0b7285',
  '#364fc7',
  '#495057',
] as const

/** From the slug, so that it stays the same. */
export function tileColor(slug: string): string {
  let hash = 7
  for (const character of slug) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003
  return TILE_COLORS[hash % TILE_COLORS.length] as string
}

/** `GA` for Google Analytics 4, `Sl` for Slack. */
export function tileLetters(title: string): string {
  const words = title.match(/[\p{L}\p{N}]+/gu) ?? []
  const [first = '?', second] = words
  if (second === undefined) return `${first.charAt(0).toUpperCase()}${first.charAt(1).toLowerCase()}`
  return `${first.charAt(0)}${second.charAt(0)}`.toUpperCase()
}
