// What a sender sends with: requests by HTTP, and emails to mail servers.

import { isMailUrl } from '../../destinations/webhook/email/mail-server.ts'
import { createHttpClient, type HttpClient, type HttpClientOptions } from './http/attempt.ts'
import { createMailClient } from './mail/mail-client.ts'

export function createClient(options: HttpClientOptions): HttpClient {
  const http = createHttpClient(options)
  const mail = createMailClient(options)
  return {
    get inFlight() {
      return http.inFlight + mail.inFlight
    },
    send: (request, onOutcome) => (isMailUrl(request.url) ? mail : http).send(request, onOutcome),
    async close() {
      await Promise.all([http.close(), mail.close()])
    },
  }
}
