// Follows the config maps of one namespace with Node's Kubernetes client: kube_node.js URL raw|informer VERSION.
// Prints each change as a line of JSON, and answers a line on its input with the current objects.
'use strict';
const { createRequire } = require('node:module');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const k8s = createRequire(process.env.CLIENTS + '/node/')('@kubernetes/client-node');

const [url, mode, from] = process.argv.slice(2);
const path = '/api/v1/namespaces/default/configmaps';
const config = new k8s.KubeConfig();
config.loadFromClusterAndUser({ name: 'c', server: url, skipTLSVerify: true }, { name: 'u' });

const print = (what) => process.stdout.write(JSON.stringify(what) + '\n');
const report = (type, { metadata }) => print({ type, name: metadata.name, version: Number(metadata.resourceVersion) });
const lines = readline.createInterface({ input: process.stdin });

function followInformer() {
  const api = config.makeApiClient(k8s.CoreV1Api);
  const informer = k8s.makeInformer(config, path, () => api.listNamespacedConfigMap({ namespace: 'default' }));
  informer.on('add', (object) => report('ADDED', object));
  informer.on('update', (object) => report('MODIFIED', object));
  informer.on('delete', (object) => report('DELETED', object));
  const start = () => informer.start().catch(() => setTimeout(start, 10));
  informer.on('error', () => setTimeout(start, 10));
  start();
  lines.on('line', () => {
    const view = {};
    for (const { metadata } of informer.list()) view[metadata.name] = Number(metadata.resourceVersion);
    print({ view });
  });
}

async function followRaw() {
  const watch = new k8s.Watch(config);
  for (let version = from; ; ) {
    await new Promise((done) => {
      watch.watch(path, { resourceVersion: version, allowWatchBookmarks: true }, (type, object) => {
        if (type === 'ERROR') return print({ error: JSON.stringify(object) });
        version = object.metadata.resourceVersion;
        if (type !== 'BOOKMARK') report(type, object);
      }, done).catch(done);
    });
    await sleep(5);
  }
}

lines.on('close', () => process.exit(0));
if (mode === 'raw') followRaw();
else followInformer();
