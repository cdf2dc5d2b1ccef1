/*
 * Follows the backends of a service that have at least a given weight.
 * A backend is a key below a prefix, with the value "HOST WEIGHT". One
 * whose weight becomes smaller is deleted for us, and added again when
 * its weight grows.
 *
 *     cc -o objects objects.c $(pkg-config --cflags --libs libvigil)
 *     ./objects http://127.0.0.1:2379 backends/ 10
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vigil/vigil.h>

struct backend {
    char host[64];
    int weight;
};

struct program {
    vigil_client *client;
    vigil_object_watch *watch;
    const char *prefix;
    int weight_min;
};

static int decode(vigil_object *object, vigil_error *error, void *user)
{
    struct backend *backend = malloc(sizeof(*backend));
    char text[80];
    (void)user;
    if (backend && object->value.size < sizeof(text)) {
        memcpy(text, object->value.data, object->value.size);
        text[object->value.size] = '\0';
        if (sscanf(text, "%63s %d", backend->host, &backend->weight) ==
            2) {
            object->decoded = backend;
            return 0;
        }
    }
    free(backend);
    snprintf(error->text, sizeof(error->text), "%.*s is not a backend",
             (int)object->key.size, (const char *)object->key.data);
    return 1;
}

static int has_weight(const vigil_object *object, void *user)
{
    const struct backend *backend = object->decoded;
    return backend->weight >=
           ((const struct program *)user)->weight_min;
}

static void print(const vigil_object_event *event)
{
    static const char *const names[] = {"added", "modified", "deleted"};
    const struct backend *backend = event->object.decoded;
    printf("%s %.*s: %s, weight %d\n", names[event->type],
           (int)event->object.key.size,
           (const char *)event->object.key.data, backend->host,
           backend->weight);
}

static int follow(struct program *program);

/* The past that we need is gone: begin again with the state. */
static void begin_again(struct program *program)
{
    vigil_object_watch_free(program->watch);
    printf("begins again\n");
    if (follow(program) != VIGIL_OK)
        kill(getpid(), SIGTERM);
}

static int on_batch(vigil_object_watch *watch,
                    vigil_object_batch *batch, void *user)
{
    size_t i;
    (void)watch;
    for (i = 0; i < batch->event_count; i++) {
        const vigil_object_event *event = &batch->events[i];
        if (event->type == VIGIL_OBJECT_BOOKMARK && event->initial) {
            printf("these are all\n");
        } else if (event->type <= VIGIL_OBJECT_DELETED) {
            print(event);
        } else if (event->type == VIGIL_OBJECT_ERROR &&
                   event->error->status == 410) {
            begin_again(user);
        } else if (event->type == VIGIL_OBJECT_ERROR) {
            fprintf(stderr, "%s\n", event->error->error.text);
            kill(getpid(), SIGTERM);
        }
    }
    fflush(stdout);
    return VIGIL_WATCH_CONTINUE;
}

static int follow(struct program *program)
{
    vigil_object_options options;
    vigil_object_options_init(&options);
    options.key = vigil_text(program->prefix);
    options.prefix = 1;
    options.decode = decode;
    options.release = free;
    options.matches = has_weight;
    return vigil_object_watch_new(program->client, &options, on_batch,
                                  program, &program->watch);
}

int main(int argc, char **argv)
{
    struct program program = {NULL, NULL, NULL, 0};
    vigil_options options;
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
    program.prefix = argc > 2 ? argv[2] : "backends/";
    program.weight_min = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
    if (vigil_client_new(&options, &program.client, &error) !=
        VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (follow(&program) == VIGIL_OK)
        sigwait(&signals, &got);
    vigil_object_watch_free(program.watch);
    vigil_client_free(program.client);
    return 0;
}
