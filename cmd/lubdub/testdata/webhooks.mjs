// Receives webhooks and verifies each as its users do: node webhooks.mjs <folder of standardwebhooks> <secret>
import { createRequire } from 'node:module'
import { createServer } from 'node:http'

const { Webhook } = createRequire(process.argv[2] + '/')('standardwebhooks')
const webhook = new Webhook(process.argv[3])
const server = createServer((req, res) => {
  const parts = []
  req.on('data', (part) => parts.push(part))
  req.on('end', () => {
    try {
      const m = webhook.verify(Buffer.concat(parts).toString(), req.headers)
      console.log(`ok ${req.headers['webhook-id']} ${m.type} ${m.data.subject}`)
      res.end()
    } catch (e) {
      console.log(`bad ${e.message}`)
      res.writeHead(400).end()
    }
  })
})
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))
