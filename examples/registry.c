/*
 * A service registry: announces an address under a lease, and prints
 * which ones exist. When the program ends or loses its connection for
 * too long, its entry disappears.
 *
 *     ./registry http://127.0.0.1:2379 web 10.0.0.5:8080
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <vigil/vigil.h>

enum { TTL_SECONDS = 10 };

static void on_lost(vigil_lease *lease, const vigil_error *error,
                    void *user)
{
    (void)lease;
    (void)user;
    fprintf(stderr, "the entry is lost: %s\n", error->text);
    kill(getpid(),
         SIGTERM); /* a real program would announce itself again */
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch,
                    void *user)
{
    size_t i;
    (void)watch;
    (void)user;
    for (i = 0; i < batch->event_count; i++)
        printf("%s %.*s\n",
               batch->events[i].type == VIGIL_PUT ? "up" : "down",
               VIGIL_ARGS(batch->events[i].kv->key));
    fflush(stdout);
    return VIGIL_WATCH_CONTINUE;
}

/* Prints the entries that exist, and watches later changes. */
static int follow(vigil_client *client, const char *prefix,
                  vigil_watch **ret_watch)
{
    vigil_call *call = vigil_get_prefix(client, vigil_text(prefix));
    vigil_watch_options options;
    const vigil_range_response *found;
    size_t i;
    if (vigil_call_run(call) != VIGIL_OK) {
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
        vigil_call_free(call);
        return 1;
    }
    found = vigil_range_result(call);
    for (i = 0; i < found->kv_count; i++)
        printf("up %.*s\n", VIGIL_ARGS(found->kvs[i].key));
    fflush(stdout);
    vigil_watch_options_init(&options);
    options.key = vigil_text(prefix);
    options.prefix = 1;
    options.revision = found->header->revision + 1;
    vigil_call_free(call);
    return vigil_watch_new(client, &options, on_batch, NULL,
                           ret_watch) != VIGIL_OK;
}

/* Prints the error of a failed call, and frees it. */
static int finish(vigil_call *call)
{
    int code = vigil_call_run(call);
    if (code != VIGIL_OK)
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    vigil_call_free(call);
    return code;
}

static int announce(vigil_client *client, const char *key,
                    const char *address, vigil_lease **ret_lease)
{
    vigil_call *grant = vigil_lease_grant(client, TTL_SECONDS, 0);
    int64_t id;
    if (vigil_call_run(grant) != VIGIL_OK) {
        fprintf(stderr, "%s\n", vigil_call_error(grant)->text);
        vigil_call_free(grant);
        return 1;
    }
    id = vigil_lease_grant_result(grant)->id;
    vigil_call_free(grant);
    if (vigil_lease_keep(client, id, TTL_SECONDS, on_lost, NULL,
                         ret_lease) != VIGIL_OK)
        return 1;
    return finish(
        vigil_put(client, vigil_text(key), vigil_text(address), id));
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_client *client;
    vigil_watch *watch;
    vigil_lease *lease = NULL;
    vigil_error error;
    sigset_t signals;
    char prefix[100], key[200];
    int got, failed = 1;

    if (argc != 4) {
        fprintf(stderr, "usage: registry ENDPOINTS SERVICE ADDRESS\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    snprintf(prefix, sizeof(prefix), "services/%.80s/", argv[2]);
    snprintf(key, sizeof(key), "%s%.80s", prefix, argv[3]);
    vigil_options_init(&options);
    options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (follow(client, prefix, &watch) == 0) {
        failed = announce(client, key, argv[3], &lease);
        if (!failed) {
            sigwait(&signals, &got);
            finish(vigil_lease_revoke(client, vigil_lease_id(lease)));
        }
        vigil_lease_free(lease);
        vigil_watch_free(watch);
    }
    vigil_client_free(client);
    return failed;
}
