// Third-party clients for servers, from the registry, with only the host changed: each feature of node-clients.ts, up to the webhook.

import { startNodeBench } from './node-bench.ts'
import { NODE_CLIENTS } from './node-clients.ts'
import { tryOut } from './results.ts'

tryOut(NODE_CLIENTS, startNodeBench)
