// Clients for servers that others publish, from the registry and with nothing changed but the host: each feature of
// node-clients.ts, followed to the webhook.

import { startNodeBench } from './node-bench.ts'
import { NODE_CLIENTS } from './node-clients.ts'
import { tryOut } from './results.ts'

tryOut(NODE_CLIENTS, startNodeBench)
