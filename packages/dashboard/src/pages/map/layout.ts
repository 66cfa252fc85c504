// Where the nodes of the map are, and how its lines run: three columns, each in the middle of the height. The result depends only on which
// nodes and edges there are, on their volume in coarse steps, and on the width, so nothing moves when numbers change. Pure.

import type { Edge, Kind, Node, Pipeline } from './pipeline.ts'

export interface Box {
  node: Node
  x: number
  y: number
  width: number
  height: number
}

export interface Line {
  edge: Edge
  path: string
  width: number
  /** Where its rate is written. */
  label: { x: number; y: number; anchor: 'start' | 'end' }
}

export interface Layout {
  boxes: readonly Box[]
  lines: readonly Line[]
  height: number
}

const HEIGHTS: Readonly<Record<Kind, number>> = { source: 54, gate: 54, destination: 62 }
const GAP = 14
const COLUMNS: readonly Kind[] = ['source', 'gate', 'destination']
/** Shares of the width: the columns, and between them the lines. */
const SHARES: Readonly<Record<Kind, number>> = { source: 0.22, gate: 0.2, destination: 0.27 }
const WIDEST = 14
const THINNEST = 1.5

export function layoutOf({ nodes, edges }: Pipeline, width: number): Layout {
  const columns = COLUMNS.map((kind) => nodes.filter((node) => node.kind === kind))
  const heights = columns.map((column) => column.reduce((sum, { kind }) => sum + HEIGHTS[kind] + GAP, -GAP))
  const height = Math.max(0, ...heights)
  const between = (width * (1 - SHARES.source - SHARES.gate - SHARES.destination)) / 2
  const boxes: Box[] = []
  let x = 0
  for (const [at, kind] of COLUMNS.entries()) {
    let y = (height - (heights[at] as number)) / 2
    for (const node of columns[at] as Node[]) {
      boxes.push({ node, x, y, width: width * SHARES[kind], height: HEIGHTS[kind] })
      y += HEIGHTS[kind] + GAP
    }
    x += width * SHARES[kind] + between
  }
  return { boxes, lines: linesOf(edges, boxes), height }
}

function linesOf(edges: readonly Edge[], boxes: readonly Box[]): Line[] {
  const boxOf = new Map(boxes.map((box) => [box.node.id, box]))
  const yOf = (id: string): number => boxOf.get(id)?.y ?? 0
  // Lines leave and arrive in the order of their other ends, so that they cross as little as possible.
  const leaving = inOrder(edges, 'from', (edge) => yOf(edge.to))
  const arriving = inOrder(edges, 'to', (edge) => yOf(edge.from))
  const largest = scaleOf(Math.max(0, ...edges.map(({ perMinute }) => perMinute)))
  return edges.flatMap((edge) => {
    const [from, to] = [boxOf.get(edge.from), boxOf.get(edge.to)]
    if (from === undefined || to === undefined) return []
    const [x1, y1] = [from.x + from.width, placeAt(from, leaving.get(edge))]
    const [x2, y2] = [to.x, placeAt(to, arriving.get(edge))]
    const middle = (x1 + x2) / 2
    const isFromSource = from.node.kind === 'source'
    const width = widthOf(edge.perMinute, largest)
    const label = isFromSource
      ? ({ x: x1 + 6, y: y1 - width / 2 - 3, anchor: 'start' } as const)
      : ({ x: x2 - 6, y: y2 - width / 2 - 3, anchor: 'end' } as const)
    return [
      {
        edge,
        path: `M${round(x1)},${round(y1)} C${round(middle)},${round(y1)} ${round(middle)},${round(y2)} ${round(x2)},${round(y2)}`,
        width,
        label,
      },
    ]
  })
}

/** The place of one of several ends of lines at the side of a box. */
function placeAt({ y, height }: Box, share = 0.5): number {
  return y + height * share
}

/** For each edge, where its end is among those at the same node, as a share of the node's side. */
function inOrder(edges: readonly Edge[], side: 'from' | 'to', order: (edge: Edge) => number): ReadonlyMap<Edge, number> {
  const byNode = new Map<string, Edge[]>()
  for (const edge of edges) byNode.set(edge[side], [...(byNode.get(edge[side]) ?? []), edge])
  const shares = new Map<Edge, number>()
  for (const own of byNode.values())
    for (const [at, edge] of own.sort((a, b) => order(a) - order(b)).entries()) shares.set(edge, (at + 1) / (own.length + 1))
  return shares
}

/** By the square root, so that one busy line leaves the others visible; in steps of the scale, so that lines rarely change. */
function widthOf(perMinute: number, largest: number): number {
  if (perMinute === 0 || largest === 0) return THINNEST
  return Math.max(THINNEST, Math.round(Math.sqrt(perMinute / largest) * WIDEST))
}

/** The next power of four: the scale stays while the largest rate wavers. */
function scaleOf(largest: number): number {
  return largest <= 0 ? 0 : 4 ** Math.ceil(Math.log(largest) / Math.log(4))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** The node to which an arrow key leads; null if there is none. */
export function nextNode(boxes: readonly Box[], from: string, key: string): string | null {
  const box = boxes.find(({ node }) => node.id === from)
  if (box === undefined) return boxes[0]?.node.id ?? null
  const column = boxes.filter(({ node }) => node.kind === box.node.kind)
  const at = column.indexOf(box)
  if (key === 'Home') return column[0]?.node.id ?? null
  if (key === 'End') return column.at(-1)?.node.id ?? null
  if (key === 'ArrowUp' || key === 'ArrowDown') return column[at + (key === 'ArrowUp' ? -1 : 1)]?.node.id ?? null
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return null
  const place = COLUMNS.indexOf(box.node.kind) + (key === 'ArrowLeft' ? -1 : 1)
  const middle = box.y + box.height / 2
  const beside = boxes.filter(({ node }) => node.kind === COLUMNS[place])
  const nearest = beside.sort((a, b) => Math.abs(a.y + a.height / 2 - middle) - Math.abs(b.y + b.height / 2 - middle))[0]
  return nearest?.node.id ?? null
}
