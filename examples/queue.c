/*
 * A program without callbacks: it waits for its own input and for the
 * queue of the client, and takes what has happened. Every line of the
 * input, "key value", is put; every change of the keys with the prefix
 * is printed. When the program is slow, the watch waits for it, with a
 * bounded buffer.
 *
 *     cc -o queue queue.c $(pkg-config --cflags --libs libvigil)
 *     ./queue http://127.0.0.1:2379 config/
 */
#include <poll.h>
#include <stdio.h>
#include <vigil/vigil.h>

/* 0: the end of the input. */
static int put_line(vigil_client *client, vigil_queue *queue)
{
    char line[256], key[128], value[128];
    vigil_call *call;
    if (!fgets(line, sizeof(line), stdin))
        return 0;
    if (sscanf(line, "%127s %127s", key, value) != 2)
        return 1;
    call = vigil_put(client, vigil_text(key), vigil_text(value), 0);
    if (vigil_queue_call(queue, call, NULL) != VIGIL_OK)
        vigil_call_free(call);
    return 1;
}

static void print_call(vigil_call *call)
{
    if (vigil_call_error(call)->code == VIGIL_OK)
        printf("stored at revision %lld\n",
               (long long)vigil_call_header(call)->revision);
    else
        printf("not stored: %s\n", vigil_call_error(call)->text);
    vigil_call_free(call);
}

static void print_batch(const vigil_watch_batch *batch)
{
    size_t i;
    for (i = 0; i < batch->event_count; i++) {
        const vigil_kv *kv = batch->events[i].kv;
        printf("%s %.*s\n",
               batch->events[i].type == VIGIL_PUT ? "put" : "delete",
               (int)kv->key.size, (const char *)kv->key.data);
    }
    if (batch->what == VIGIL_WATCH_CREATED)
        printf("watching\n");
    if (batch->what == VIGIL_WATCH_ENDED)
        printf("the watch has ended: %s\n", batch->error->text);
}

/* Takes everything that is ready; with a timeout of -1, all that
 * follows until the client has ended. */
static void drain(vigil_queue *queue, int timeout_ms)
{
    const vigil_item *item;
    while (vigil_queue_take(queue, timeout_ms, &item) == VIGIL_OK) {
        if (item->what == VIGIL_ITEM_CALL)
            print_call(item->call);
        else if (item->what == VIGIL_ITEM_WATCH)
            print_batch(item->batch);
        vigil_item_release(item);
    }
    fflush(stdout);
}

static void run(vigil_client *client, vigil_queue *queue)
{
    struct pollfd fds[2];
    int more = 1;
    fds[0].fd = 0;
    fds[1].fd = vigil_queue_fd(queue);
    fds[0].events = fds[1].events = POLLIN;
    while (more && poll(fds, 2, -1) > 0) {
        if (fds[1].revents)
            drain(queue, 0);
        if (fds[0].revents)
            more = put_line(client, queue);
    }
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_watch_options watch_options;
    vigil_client *client;
    vigil_queue *queue = NULL;
    vigil_watch *watch = NULL;
    vigil_error error;
    int failed = 1;

    vigil_options_init(&options);
    if (argc > 1)
        options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    vigil_watch_options_init(&watch_options);
    watch_options.key = vigil_text(argc > 2 ? argv[2] : "config/");
    watch_options.prefix = 1;
    watch_options.created_notify = 1;
    setvbuf(stdin, NULL, _IONBF, 0); /* poll must see every line */
    if (vigil_queue_new(client, &queue) == VIGIL_OK &&
        vigil_queue_watch(queue, &watch_options, NULL, &watch) ==
            VIGIL_OK) {
        run(client, queue);
        vigil_client_shutdown(client); /* whatever still runs ends */
        drain(queue, -1);
        failed = 0;
    }
    vigil_watch_free(watch);
    vigil_queue_free(queue);
    vigil_client_free(client);
    return failed;
}
