// The picture: boxes for sources, tracking plans and destinations, and lines between them. A box is a link. One of them is in the order of
// the Tab key, and arrow keys lead to the others; the one that is hovered over or focused says its cause and what it is connected with.

import { useElementSize } from '@mantine/hooks'
import { type KeyboardEvent, useId, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { SmallNote, Strong } from '../../components/styled.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { type Box, type Layout, layoutOf, nextNode } from './layout.ts'
import css from './map.module.css'
import { connected, type Edge, type Mood, type Node, type Pipeline, rateText } from './pipeline.ts'

/** A pattern as well as a colour. */
const DASHES: Readonly<Record<Mood, string | undefined>> = { good: undefined, quiet: undefined, warning: '9 4', bad: '3 4' }
/** More rates than these would cover each other. */
const MAX_RATES = 40
const CAUSE_WIDTH = 320

export default function PipelineMap({ pipeline, label }: { pipeline: Pipeline; label: string }) {
  const { ref, width } = useElementSize<HTMLDivElement>()
  const layout = useMemo(() => (width === 0 ? null : layoutOf(pipeline, width)), [pipeline, width])
  return (
    <div ref={ref} className={css['map']} style={{ height: layout?.height ?? 320 }} aria-busy={layout === null}>
      {layout !== null && <Picture layout={layout} edges={pipeline.edges} label={label} width={width} />}
    </div>
  )
}

function Picture({ layout, edges, label, width }: { layout: Layout; edges: readonly Edge[]; label: string; width: number }) {
  const [hovered, setHovered] = useState<string | null>(null)
  const [focused, setFocused] = useState<string | null>(null)
  const [last, setLast] = useState<string | null>(null)
  const refs = useRef(new Map<string, HTMLAnchorElement>())
  const helpId = useId()
  const causeId = useId()
  const shown = hovered ?? focused
  const bright = useMemo(() => (shown === null ? null : connected(edges, shown)), [edges, shown])
  const shownBox = layout.boxes.find(({ node }) => node.id === shown)
  const stop = layout.boxes.some(({ node }) => node.id === last) ? last : layout.boxes[0]?.node.id
  const mostWaiting = Math.max(
    1,
    ...layout.boxes.filter(({ node }) => node.kind === 'destination' && node.size === 1).map(({ node }) => node.waiting),
  )

  const move = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') return setHovered(null), setFocused(null)
    const next = stop === undefined || stop === null ? null : nextNode(layout.boxes, stop, event.key)
    if (next === null) return
    event.preventDefault()
    setHovered(null)
    refs.current.get(next)?.focus()
  }
  return (
    <div role="group" aria-label={label} aria-describedby={helpId} onKeyDown={move} onMouseLeave={() => setHovered(null)}>
      <span id={helpId} hidden>
        Arrow keys lead from one to another.
      </span>
      <svg className={css['lines']} width={width} height={layout.height} aria-hidden="true">
        {layout.lines.map(({ edge, path, width: strokeWidth, label: at }) => {
          const isBright = bright === null || (bright.has(edge.from) && bright.has(edge.to))
          return (
            <g key={`${edge.from} ${edge.to}`} className={`${css[edge.mood]} ${isBright ? '' : css['faded']}`}>
              <path className={css['line']} d={path} strokeWidth={strokeWidth} strokeDasharray={DASHES[edge.mood]} />
              {(layout.lines.length <= MAX_RATES || (bright !== null && isBright)) && (
                <text className={css['rate']} x={at.x} y={at.y} textAnchor={at.anchor}>
                  {rateText(edge.perMinute)}
                </text>
              )}
            </g>
          )
        })}
      </svg>
      {layout.boxes.map((box) => (
        <NodeBox
          key={box.node.id}
          box={box}
          mostWaiting={mostWaiting}
          isFaded={bright !== null && !bright.has(box.node.id)}
          tabIndex={box.node.id === stop ? 0 : -1}
          describedBy={box.node.id === shown ? causeId : undefined}
          onRef={(element) => (element === null ? refs.current.delete(box.node.id) : refs.current.set(box.node.id, element))}
          onHover={() => setHovered(box.node.id)}
          onFocus={() => {
            setFocused(box.node.id)
            setLast(box.node.id)
          }}
          onBlur={() => setFocused(null)}
        />
      ))}
      {shownBox !== undefined && <Cause id={causeId} box={shownBox} edges={edges} names={layout.boxes} width={width} />}
    </div>
  )
}

interface NodeBoxProps {
  box: Box
  mostWaiting: number
  isFaded: boolean
  tabIndex: number
  describedBy: string | undefined
  onRef: (element: HTMLAnchorElement | null) => void
  onHover: () => void
  onFocus: () => void
  onBlur: () => void
}

function NodeBox({ box, mostWaiting, isFaded, tabIndex, describedBy, onRef, onHover, onFocus, onBlur }: NodeBoxProps) {
  const { node, x, y, width, height } = box
  return (
    <Link
      ref={onRef}
      href={node.to}
      className={`${css['box']} ${css[node.mood]} ${isFaded ? css['faded'] : ''}`}
      style={{ left: x, top: y, width, height }}
      tabIndex={tabIndex}
      aria-describedby={describedBy}
      onMouseEnter={onHover}
      onFocus={onFocus}
      onBlur={onBlur}
    >
      <span className={css['name']}>{node.name}</span>
      <span className={css['about']}>
        <span>{node.status}</span>
        <span>{node.kind === 'destination' && node.waiting > 0 ? `${exactCount(node.waiting)} waiting` : rateText(node.perMinute)}</span>
      </span>
      {node.kind === 'destination' && (
        <span className={css['backlog']}>
          <span style={{ display: 'block', width: `${Math.min(100, Math.round((node.waiting / mostWaiting) * 100))}%` }} />
        </span>
      )}
    </Link>
  )
}

function Cause({ id, box, edges, names, width }: { id: string; box: Box; edges: readonly Edge[]; names: readonly Box[]; width: number }) {
  const { node, x, y, height } = box
  const nameOf = (of: string): string => names.find((each) => each.node.id === of)?.node.name ?? of
  const into = edges.filter(({ to, perMinute }) => to === node.id && perMinute > 0)
  return (
    <div
      id={id}
      role="tooltip"
      className={`${css['cause']} ${css[node.mood]}`}
      style={{ left: Math.max(0, Math.min(x, width - CAUSE_WIDTH)), top: y + height + 6 }}
    >
      <Strong>{node.status}</Strong>
      <div>{node.cause}</div>
      <SmallNote component="div">{factsOf(node, into, nameOf).join(' · ')}</SmallNote>
    </div>
  )
}

function factsOf(node: Node, into: readonly Edge[], nameOf: (id: string) => string): string[] {
  const facts: string[] = []
  if (node.perMinute > 0) facts.push(`${rateText(node.perMinute)} ${node.kind === 'destination' ? 'delivered' : 'accepted'}`)
  if (node.kind === 'destination') {
    if (node.waiting > 0) facts.push(`${plural(node.waiting, 'delivery')} waiting`)
    facts.push(...into.slice(0, 3).map(({ from, perMinute }) => `${rateText(perMinute)} from ${nameOf(from)}`))
  }
  return facts
}
