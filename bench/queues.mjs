// SPDX-License-Identifier: MIT
// Job queues on PostgreSQL, for bench/machines:
//
//   node bench/queues.mjs FOLDER graphile|boss add|work|wait ADDRESS COUNT
//
// `add` adds COUNT jobs in bulk. `work` runs COUNT no-op jobs, and prints the
// seconds from the start of the first job until the store says that all are
// complete. `wait` is an idle worker that prints, for COUNT jobs added one at a
// time, the milliseconds from before the job is added to its start. FOLDER has
// the packages (tools/setup queues). The settings are those that the
// documentation of each names for throughput: worker.graphile.org/docs/performance
// and docs/api/workers.md of pg-boss.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, queue, action, address, text] = process.argv.slice(2);
const count = Number(text);
const packages = createRequire(path.resolve(folder, "node_modules", "x.js"));
const BULK = 5000;
const BATCH = 500;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;

const { Client } = packages("pg");
const client = new Client({ connectionString: address });

// Call fn with each bulk of jobs.
async function inBulk(make, fn) {
  for (let at = 0; at < count; at += BULK) {
    const size = Math.min(BULK, count - at);
    await fn(Array.from({ length: size }, (_, ix) => make(at + ix)));
  }
}

// Wait until the jobs have run, and then until the store says so.
async function whole(state, sql) {
  while (state.seen < count) await sleep(2);
  for (;;) {
    const { rows } = await client.query(sql);
    if (rows.length === 0) return now() - state.begin;
    await sleep(2);
  }
}

function note(state, jobs) {
  if (state.seen === 0) state.begin = now();
  state.seen += jobs;
  state.woken?.();
}

// Add jobs one at a time while the worker is idle.
async function latencies(state, add) {
  const found = [];
  await sleep(500);
  for (let ix = 0; ix < count; ix++) {
    const heard = new Promise((done) => {
      state.woken = () => done(now());
    });
    const begin = now();
    await add(ix);
    found.push((await heard) - begin);
    await sleep(20 + 20 * Math.random());
  }
  return found.join(" ");
}

async function graphile() {
  const { run, makeWorkerUtils } = packages("graphile-worker");
  const { Logger } = packages("@graphile/logger");
  const state = { seen: 0 };
  const preset = {
    worker: {
      connectionString: address,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: BATCH },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger: new Logger(() => () => {}),
    },
  };
  const utils = await makeWorkerUtils({ preset });
  if (action === "add") {
    await utils.migrate();
    await inBulk(
      (ix) => ({ identifier: "noop", payload: { ix } }),
      (jobs) => utils.addJobs(jobs),
    );
    await utils.release();
    return "";
  }
  const runner = await run({
    preset,
    noHandleSignals: true,
    taskList: { noop: async () => note(state, 1) },
  });
  const result =
    action === "wait"
      ? await latencies(state, (ix) => utils.addJob("noop", { ix }))
      : (await whole(
          state,
          "SELECT 1 FROM graphile_worker._private_jobs LIMIT 1",
        )) / 1e3;
  await runner.stop();
  await utils.release();
  return result;
}

async function pgBoss() {
  const main = packages.resolve("pg-boss");
  const { PgBoss } = await import(pathToFileURL(main).href);
  const state = { seen: 0 };
  const boss = new PgBoss({
    connectionString: address,
    max: 10,
    supervise: false,
    schedule: false,
    useListenNotify: true,
  });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  if (action === "add") {
    await boss.createQueue("noop", { notify: true });
    await inBulk(
      (ix) => ({ data: { ix } }),
      (jobs) => boss.insert("noop", jobs),
    );
    await boss.stop();
    return "";
  }
  const idle = action === "wait";
  if (idle) await boss.createQueue("noop", { notify: true });
  await boss.work(
    "noop",
    {
      batchSize: idle ? 1 : BATCH,
      burstWhenBatchFull: true,
      localConcurrency: idle ? 1 : 2,
      pollingIntervalSeconds: 0.5,
    },
    async (jobs) => note(state, jobs.length),
  );
  const result = idle
    ? await latencies(state, (ix) => boss.send("noop", { ix }))
    : (await whole(
        state,
        "SELECT 1 FROM pgboss.job WHERE state <> 'completed' LIMIT 1",
      )) / 1e3;
  await boss.stop({ graceful: false });
  return result;
}

await client.connect();
const result = await { graphile, boss: pgBoss }[queue]();
await client.end();
process.stdout.write(`${result}\n`, () => process.exit(0));
