// Cases for Node's etcd3, one per run: node_client.js PORT CASE. It prints `ready` where the test has to act, and
// continues when it reads a line; it exits with 0 if everything was as expected.
'use strict';
const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const { Etcd3, isRecoverableError } = createRequire(process.env.CLIENTS + '/node/')('etcd3');

const [port, name] = process.argv.slice(2);
const connect = (options) => new Etcd3({ hosts: `http://127.0.0.1:${port}`, ...options });
const limit = 20000;

async function until(what, ready) {
  for (const end = Date.now() + limit; !(await ready()); await sleep(100)) {
    if (Date.now() > end) throw new Error(`${what} did not happen`);
  }
}

const cases = {
  async put_get_delete(client) {
    await client.put('a').value('1');
    assert.equal(await client.get('a').string(), '1');
    assert.equal(await client.get('none').string(), null);
    await client.put('n').value(42);
    assert.equal(await client.get('n').number(), 42);
    for (let i = 0; i < 25; i++) await client.put(`p/${String(i).padStart(2, '0')}`).value(`${i}`);
    const all = await client.getAll().prefix('p/').strings();
    assert.equal(Object.keys(all).length, 25);
    assert.deepEqual(await client.getAll().prefix('p/').sort('Key', 'Descend').limit(2).keys(), ['p/24', 'p/23']);
    assert.equal(await client.getAll().prefix('p/').count(), 25);
    assert.equal((await client.delete().prefix('p/')).deleted, '25');
    assert.equal((await client.put('a').value('2').getPrevious()).value.toString(), '1');
    const spaced = client.namespace('space/');
    await spaced.put('x').value('y');
    assert.equal(await client.get('space/x').string(), 'y');
  },

  async transactions(client) {
    await client.put('a').value('1');
    const won = await client.if('a', 'Value', '==', '1').and('none', 'Create', '==', 0)
      .then(client.put('a').value('2'), client.get('a')).else(client.get('a')).commit();
    assert.equal(won.succeeded, true);
    assert.equal(won.responses[1].response_range.kvs[0].value.toString(), '2');
    const lost = await client.if('a', 'Version', '==', 1).then(client.put('a').value('3')).else(client.get('a')).commit();
    assert.equal(lost.succeeded, false);
    await client.stm().transact(async (tx) => { await tx.put('a').value(`${await tx.get('a').string()}!`); });
    assert.equal(await client.get('a').string(), '2!');
  },

  async watching(client) {
    const first = await client.put('w/a').value('0');
    const seen = [];
    const watcher = await client.watch().prefix('w/').startRevision(first.header.revision).withPreviousKV().create();
    watcher.on('put', (kv, before) => seen.push(`put ${kv.key}=${kv.value}<${before ? before.value : ''}`));
    watcher.on('delete', (kv, before) => seen.push(`delete ${kv.key}<${before.value}`));
    await client.put('w/a').value('1');
    await client.put('other').value('1');
    await client.delete().key('w/a');
    await until('events', () => seen.length >= 3);
    assert.deepEqual(seen, ['put w/a=0<', 'put w/a=1<0', 'delete w/a<1']);
    await watcher.cancel();
  },

  async leases(client) {
    const lease = client.lease(2);
    await lease.put('leased').value('x');
    await sleep(4000); // the client renews it
    assert.equal(await client.get('leased').string(), 'x');
    const left = await lease.grant().then((id) => client.leaseClient.leaseTimeToLive({ ID: id, keys: true }));
    assert.equal(left.keys[0].toString(), 'leased');
    await lease.revoke();
    assert.equal(await client.get('leased').string(), null);
    const notRenewed = client.lease(2, { autoKeepAlive: false });
    await notRenewed.put('short').value('x');
    await until('expiry', async () => (await client.get('short').string()) === null);
  },

  async locks(client) {
    const one = client.lock('l').ttl(10);
    await one.acquire();
    await assert.rejects(client.lock('l').acquire(), /lock/i);
    await one.release();
    assert.equal(await client.lock('l').do(() => 'inside'), 'inside');
  },

  async elections(client) {
    const election = client.election('e', 5);
    const campaign = election.campaign('me');
    await new Promise((resolve, reject) => { campaign.on('elected', resolve); campaign.on('error', reject); });
    assert.equal(await election.leader(), 'me');
    await campaign.proclaim('still me');
    await until('a new value', async () => (await election.leader()) === 'still me');
    await campaign.resign();
    assert.equal(await election.leader(), undefined);
  },

  async maintenance(client) {
    const status = await client.maintenance.status();
    assert.equal(status.leader, status.header.member_id);
    assert.equal((await client.cluster.memberList({})).members.length, 1);
    assert.deepEqual((await client.maintenance.alarm({ action: 'Get' })).alarms, []);
    await client.maintenance.defragment();
  },

  async login(client) {
    const as = (username, password) => connect({ auth: { username, password } });
    await assert.rejects(client.get('anna/1').exec(), /user name is empty/);
    const wrong = as('anna', 'wrong');
    await assert.rejects(wrong.get('anna/1').exec(), /authentication failed/);
    wrong.close();
    const [anna, root] = [as('anna', 'annapw'), as('root', 'rootpw')];
    await root.put('other').value('x');
    await anna.put('anna/1').value('x');
    assert.equal(await anna.get('anna/1').string(), 'x');
    await assert.rejects(anna.put('other').value('y').exec(), /permission denied/);
    await assert.rejects(anna.getAll().exec(), /permission denied/);
    const seen = [];
    const watcher = await anna.watch().prefix('anna/').create();
    watcher.on('put', (kv) => seen.push(kv.key.toString()));
    await root.put('anna/2').value('x');
    await until('the event', () => seen.includes('anna/2'));
    const lines = readline.createInterface({ input: process.stdin });
    console.log('ready');
    await new Promise((resolve) => lines.once('line', resolve));
    lines.close();
    assert.equal(await anna.get('anna/1').string(), 'x'); // the client logs in again by itself
    await anna.put('anna/1').value('y');
    await until('the watch', () => seen.includes('anna/1'));
    await watcher.cancel();
    anna.close();
    root.close();
  },

  async reconnecting(client) {
    await client.put('a').value('1');
    const seen = [];
    const watcher = await client.watch().key('a').create();
    watcher.on('put', (kv) => seen.push(kv.value.toString()));
    const lines = readline.createInterface({ input: process.stdin });
    console.log('ready');
    await new Promise((resolve) => lines.once('line', resolve));
    lines.close();
    await until('a connection', async () => {
      try {
        return (await client.get('a').string()) === '1' && Boolean(await client.put('a').value('2'));
      } catch (error) {
        if (!isRecoverableError(error)) throw error;
        return false;
      }
    });
    await until('the watch', () => seen.includes('2'));
    await watcher.cancel();
  },
};

const client = connect();
cases[name](client).then(() => client.close()).catch((error) => {
  console.error(error);
  process.exit(1);
});
