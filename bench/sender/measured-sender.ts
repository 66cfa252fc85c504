// The service's sender thread, which also reports its CPU time.

import '../../packages/server/src/delivery/sender/sender-thread.ts'
import { answerCpu } from './cpu-channel.ts'

answerCpu('service')
