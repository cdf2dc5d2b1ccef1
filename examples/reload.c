/*
 * Configuration that is reloaded: reads a prefix once, then follows its
 * changes from exactly that revision, so that no change is missed in
 * between.
 *
 *     ./reload http://127.0.0.1:2379 config/
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <vigil/vigil.h>

static void set_value(const vigil_kv *kv)
{
    printf("%.*s = %.*s\n", VIGIL_ARGS(kv->key), VIGIL_ARGS(kv->value));
    fflush(stdout);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch,
                    void *user)
{
    size_t i;
    (void)watch;
    (void)user;
    for (i = 0; i < batch->event_count; i++) {
        const vigil_event *event = &batch->events[i];
        if (event->type == VIGIL_PUT)
            set_value(event->kv);
        else
            printf("%.*s is gone\n", VIGIL_ARGS(event->kv->key));
    }
    if (batch->what == VIGIL_WATCH_ENDED) {
        /* VIGIL_ERROR_COMPACTED: too far behind. A real program would
         * begin from the start. */
        fprintf(stderr, "%s\n", batch->error->text);
        kill(getpid(), SIGTERM);
    }
    fflush(stdout);
    return VIGIL_WATCH_CONTINUE;
}

static int load(vigil_client *client, const char *prefix,
                int64_t *ret_revision)
{
    vigil_call *call = vigil_get_prefix(client, vigil_text(prefix));
    int code = vigil_call_run(call);
    size_t i;
    if (code == VIGIL_OK) {
        const vigil_range_response *range = vigil_range_result(call);
        for (i = 0; i < range->kv_count; i++)
            set_value(&range->kvs[i]);
        *ret_revision = range->header->revision;
    } else {
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    }
    vigil_call_free(call);
    return code;
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_watch_options watch_options;
    vigil_client *client;
    vigil_watch *watch;
    vigil_error error;
    sigset_t signals;
    const char *prefix = argc > 2 ? argv[2] : "config/";
    int64_t revision;
    int got, failed = 1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    vigil_options_init(&options);
    if (argc > 1)
        options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    vigil_watch_options_init(&watch_options);
    watch_options.key = vigil_text(prefix);
    watch_options.prefix = 1;
    if (load(client, prefix, &revision) == VIGIL_OK) {
        watch_options.revision = revision + 1;
        if (vigil_watch_new(client, &watch_options, on_batch, NULL,
                            &watch) == VIGIL_OK) {
            sigwait(&signals, &got);
            vigil_watch_free(watch);
            failed = 0;
        }
    }
    vigil_client_free(client);
    return failed;
}
