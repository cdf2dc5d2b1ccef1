/*
 * A job queue in one file, with the store inside the program: jobs are
 * keys, workers are threads that claim them by a transaction, and a
 * watch wakes the workers when there is a new one. A job that was
 * claimed by a program that was killed is open again at the next start.
 *
 *     cc jobs.c $(pkg-config --cflags --libs libvigil-embed) -o jobs
 *     ./jobs jobs.data 100
 *
 * Keys: job/ID has the work, and done/ID the result. A claim is the key
 * claim/ID, bound to a lease that the program keeps alive as long as it
 * runs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vigil/embed.h>
#include <vigil/vigil.h>

enum { WORKERS = 4, KEY_BYTES = 64, LEASE_SECONDS = 5 };

static vigil_client *client;
static int64_t lease_id;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long news; /* changes that the watch has seen; protected by the
                     mutex, as the next */
static long left; /* jobs that are not done */

/* Runs a call, and returns it if it has succeeded. */
static vigil_call *finished(vigil_call *call)
{
    if (vigil_call_run(call) == VIGIL_OK)
        return call;
    fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    exit(1);
}

static void finish(vigil_call *call)
{
    vigil_call_free(finished(call));
}

/* Called for every change, on the client's thread. */
static int on_jobs(vigil_watch *watch, const vigil_watch_batch *batch,
                   void *user)
{
    (void)watch;
    (void)user;
    if (batch->what == VIGIL_WATCH_ENDED)
        fprintf(stderr, "the watch has ended: %s\n",
                batch->error->text);
    pthread_mutex_lock(&mutex);
    news++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return VIGIL_WATCH_CONTINUE;
}

/* True: the job is ours, because it is still there, and no other worker
 * has the claim. */
static int claim(const char *id)
{
    char key[KEY_BYTES], job[KEY_BYTES];
    snprintf(key, sizeof(key), "claim/%s", id);
    snprintf(job, sizeof(job), "job/%s", id);
    vigil_txn *txn = vigil_txn_new(client);
    vigil_txn_if_create_revision(txn, vigil_text(job), VIGIL_GREATER,
                                 0);
    vigil_txn_if_create_revision(txn, vigil_text(key), VIGIL_EQUAL, 0);
    vigil_txn_put(txn, vigil_text(key), vigil_text("this program"),
                  lease_id);
    vigil_call *call = finished(vigil_txn_call(txn));
    int ours = vigil_txn_result(call)->succeeded;
    vigil_call_free(call);
    vigil_txn_free(txn);
    return ours;
}

/* The result appears and the job disappears at once, durably. */
static void complete(const char *id, const char *result)
{
    char job[KEY_BYTES], done[KEY_BYTES], claimed[KEY_BYTES];
    snprintf(job, sizeof(job), "job/%s", id);
    snprintf(done, sizeof(done), "done/%s", id);
    snprintf(claimed, sizeof(claimed), "claim/%s", id);
    vigil_txn *txn = vigil_txn_new(client);
    vigil_txn_put(txn, vigil_text(done), vigil_text(result), 0);
    vigil_txn_delete(txn, vigil_text(job));
    vigil_txn_delete(txn, vigil_text(claimed));
    finish(vigil_txn_call(txn));
    vigil_txn_free(txn);
    pthread_mutex_lock(&mutex);
    left--;
    pthread_cond_broadcast(
        &changed); /* the others may wait for the last one */
    pthread_mutex_unlock(&mutex);
}

/* Works on every job that it can claim. */
static void work_on_jobs(void)
{
    vigil_call *list =
        finished(vigil_get_prefix(client, vigil_text("job/")));
    const vigil_range_response *jobs = vigil_range_result(list);
    for (size_t i = 0; i < jobs->kv_count; i++) {
        char id[KEY_BYTES / 2], result[32];
        vigil_bytes key = jobs->kvs[i].key;
        snprintf(id, sizeof(id), "%.*s", (int)key.size - 4,
                 (const char *)key.data + 4);
        if (!claim(id))
            continue;
        snprintf(result, sizeof(result), "%zu bytes",
                 jobs->kvs[i].value.size);
        complete(id, result);
    }
    vigil_call_free(list);
}

/* Those that an earlier run has left, and the revision at which they
 * were counted. */
static long count_jobs(int64_t *ret_revision)
{
    vigil_call *list =
        finished(vigil_get_prefix(client, vigil_text("job/")));
    const vigil_range_response *jobs = vigil_range_result(list);
    long count = (long)jobs->kv_count;
    *ret_revision = jobs->header->revision;
    vigil_call_free(list);
    return count;
}

static void *worker(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mutex);
    while (left > 0) {
        long seen = news;
        pthread_mutex_unlock(&mutex);
        work_on_jobs();
        pthread_mutex_lock(&mutex);
        while (news == seen && left > 0)
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void begin_lease(vigil_lease **ret_lease)
{
    vigil_call *grant =
        finished(vigil_lease_grant(client, LEASE_SECONDS, 0));
    lease_id = vigil_lease_grant_result(grant)->id;
    vigil_call_free(grant);
    if (vigil_lease_keep(client, lease_id, LEASE_SECONDS, NULL, NULL,
                         ret_lease) != VIGIL_OK)
        exit(1);
}

/* Names the first revision, because a watch "from now on" begins a
 * moment later and would miss jobs that are added before. */
static void begin_watch(int64_t revision, vigil_watch **ret_watch)
{
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.revision = revision;
    options.key = vigil_text(""); /* also claims that expire */
    options.prefix = 1;
    if (vigil_watch_new(client, &options, on_jobs, NULL, ret_watch) !=
        VIGIL_OK)
        exit(1);
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    vigil_lease *lease;
    vigil_watch *watch;
    int64_t revision;
    vigil_error error;
    long jobs = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
    if (vigil_open_embedded(argc > 1 ? argv[1] : "jobs.data", NULL,
                            &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    begin_lease(&lease);
    left = jobs + count_jobs(&revision);
    begin_watch(revision + 1, &watch);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (long i = 0; i < jobs; i++) {
        char key[KEY_BYTES];
        snprintf(key, sizeof(key), "job/%08ld", i);
        finish(vigil_put(client, vigil_text(key),
                         vigil_text("do something"), 0));
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    vigil_call *results =
        finished(vigil_get_prefix(client, vigil_text("done/")));
    printf("%zu jobs are done\n",
           vigil_range_result(results)->kv_count);
    vigil_call_free(results);
    vigil_watch_free(watch);
    vigil_lease_free(lease);
    vigil_client_free(client);
    return 0;
}
