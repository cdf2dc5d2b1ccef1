/*
 * A client in a loop around epoll, without a thread of its own: prints
 * every change of a key, until standard input ends.
 *
 *     ./loop_epoll http://127.0.0.1:2379 key
 */
#include <stdio.h>
#include <unistd.h>
#include <vigil/epoll.h>
#include <vigil/vigil.h>

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch,
                    void *user)
{
    size_t i;
    (void)watch;
    (void)user;
    if (batch->what == VIGIL_WATCH_CREATED)
        printf("ready\n");
    for (i = 0; i < batch->event_count; i++)
        printf("revision %lld\n",
               (long long)batch->events[i].kv->mod_revision);
    fflush(stdout);
    return VIGIL_WATCH_CONTINUE;
}

/* Until standard input ends. */
static void run_loop(int epoll_fd, vigil_client *client)
{
    struct epoll_event ready[2];
    char bytes[256];
    int i, count, open = 1;
    while (open) {
        count = epoll_wait(epoll_fd, ready, 2,
                           vigil_epoll_timeout(client, -1));
        vigil_client_process(client); /* makes the callbacks */
        for (i = 0; i < count; i++)
            if (ready[i].data.fd == STDIN_FILENO)
                open = read(STDIN_FILENO, bytes, sizeof(bytes)) > 0;
    }
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_watch_options watch_options;
    vigil_client *client;
    vigil_watch *watch;
    vigil_error error;
    struct epoll_event input;
    epoll_data_t data;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    vigil_options_init(&options);
    options.own_thread = 0;
    if (argc > 1)
        options.endpoints = argv[1];
    if (epoll_fd < 0 ||
        vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "cannot begin\n");
        return 1;
    }
    input.events = EPOLLIN;
    input.data.fd = STDIN_FILENO;
    data.fd = vigil_client_fd(client);
    vigil_watch_options_init(&watch_options);
    watch_options.key = vigil_text(argc > 2 ? argv[2] : "key");
    watch_options.created_notify = 1;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &input) == 0 &&
        vigil_epoll_add(epoll_fd, client, data) == 0 &&
        vigil_watch_new(client, &watch_options, on_batch, NULL,
                        &watch) == VIGIL_OK) {
        run_loop(epoll_fd, client);
        vigil_watch_free(watch);
    }
    vigil_client_free(client);
    close(epoll_fd);
    return 0;
}
