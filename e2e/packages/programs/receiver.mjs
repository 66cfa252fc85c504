// The receiver of receive.cjs, with the package as an ES module gets it. Prints what the test compares.
import * as webhook from '@switchyard/webhook'
import receive from './receive.cjs'

console.log(JSON.stringify(await receive(webhook)))
