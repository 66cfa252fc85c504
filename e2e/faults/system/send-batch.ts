// One call of the tracking API, without retries.

/** Returns the status. Throws if there was no complete answer in time. */
export async function sendBatch(url: string, writeKey: string, batch: readonly object[], timeoutMs = 30_000): Promise<number> {
  const response = await fetch(`${url}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ batch }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  await response.text()
  return response.status
}
