// The receiver of receive.cjs, with the package as CommonJS gets it. Prints what the test compares.
const webhook = require('@switchyard/webhook')
const receive = require('./receive.cjs')

void receive(webhook).then((seen) => console.log(JSON.stringify(seen)))
