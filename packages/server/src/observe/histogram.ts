// A histogram that costs one or two comparisons per value. The histogram of prom-client looks up its labels for every value, which is
// too slow for tens of thousands of deliveries per second. Samples in the Prometheus format are only created for a scrape.

export interface Sample {
  /** Set if it differs from the name of the metric. */
  metricName?: string
  labels: Record<string, string | number>
  value: number
}

export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  /** `bounds` must be in ascending order. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number, times = 1): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at++
    this.#counts[at] = (this.#counts[at] as number) + times
    this.#sum += value * times
  }

  get isEmpty(): boolean {
    return this.#counts.every((count) => count === 0)
  }

  samples(name: string, labels: Record<string, string>): Sample[] {
    const samples: Sample[] = []
    let below = 0
    for (let at = 0; at < this.#counts.length; at++) {
      below += this.#counts[at] as number
      const le = at === this.#bounds.length ? '+Inf' : String(this.#bounds[at])
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: below })
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum }, { metricName: `${name}_count`, labels, value: below })
    return samples
  }
}
