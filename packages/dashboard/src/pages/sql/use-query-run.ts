// Runs a query, and cancels it: the service ends a query when its request is aborted.

import { useEffect, useRef, useState } from 'react'
import { ApiProblem, call } from '../../api/client.ts'
import type { Result } from './chartable.ts'

export interface Run {
  state: 'idle' | 'running' | 'cancelled'
  result: Result | null
  problem: ApiProblem | null
  tookMs: number | null
}

export function useQueryRun(destinationId: string): { run: Run; start: (query: string) => void; cancel: () => void } {
  const [run, setRun] = useState<Run>({ state: 'idle', result: null, problem: null, tookMs: null })
  const controller = useRef<AbortController | null>(null)
  useEffect(() => () => controller.current?.abort(), [])
  const start = (query: string): void => {
    controller.current?.abort()
    const own = new AbortController()
    controller.current = own
    const begin = performance.now()
    setRun((before) => ({ ...before, state: 'running', problem: null }))
    call('POST /api/sql', { body: { query, destinationId }, signal: own.signal }).then(
      (result) => setRun({ state: 'idle', result, problem: null, tookMs: performance.now() - begin }),
      (error: unknown) => {
        if (own.signal.aborted) return
        if (!(error instanceof ApiProblem)) throw error
        setRun({ state: 'idle', result: null, problem: error, tookMs: null })
      },
    )
  }
  const cancel = (): void => {
    controller.current?.abort()
    setRun((before) => ({ ...before, state: 'cancelled' }))
  }
  return { run, start, cancel }
}
