/*
 * Prints every change of the keys with a prefix. It survives restarts
 * of the server: stop it, change keys after it is back, and nothing is
 * missing.
 *
 *     cc -o watch watch.c $(pkg-config --cflags --libs libvigil)
 *     ./watch http://127.0.0.1:2379 config/
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <vigil/vigil.h>

static void print_event(const vigil_event *event)
{
    const vigil_kv *kv = event->kv;
    printf("%s %.*s", event->type == VIGIL_PUT ? "put" : "delete",
           VIGIL_ARGS(kv->key));
    if (event->type == VIGIL_PUT)
        printf(" = %.*s", VIGIL_ARGS(kv->value));
    printf(" (revision %lld)\n", (long long)kv->mod_revision);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch,
                    void *user)
{
    size_t i;
    (void)watch;
    (void)user;
    if (batch->what == VIGIL_WATCH_CREATED)
        printf("watching from revision %lld\n",
               (long long)batch->revision + 1);
    for (i = 0; i < batch->event_count; i++)
        print_event(&batch->events[i]);
    if (batch->what == VIGIL_WATCH_ENDED) {
        fprintf(stderr, "the watch has ended: %s\n",
                batch->error->text);
        kill(getpid(), SIGTERM);
    }
    fflush(stdout);
    return VIGIL_WATCH_CONTINUE;
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_watch_options watch_options;
    vigil_client *client;
    vigil_watch *watch;
    vigil_error error;
    sigset_t signals;
    int got;

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
    watch_options.key = vigil_text(argc > 2 ? argv[2] : "");
    watch_options.prefix = 1;
    watch_options.created_notify = 1;
    if (vigil_watch_new(client, &watch_options, on_batch, NULL,
                        &watch) != VIGIL_OK) {
        vigil_client_free(client);
        return 1;
    }
    sigwait(&signals, &got);
    vigil_watch_free(watch);
    vigil_client_free(client);
    return 0;
}
