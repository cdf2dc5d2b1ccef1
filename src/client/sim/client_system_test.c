/*
 * A client over the operating system's network, with each of its system calls failing once in turn.
 * The linker redirects them to this file (src/client/layer.cmake).
 */
#include "client/sim/etcd_sim_test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vigil/vigil.h>

/* Which call of the thread that uses the client fails; the server's thread has its own. 0: none;
 * 1: the next one. */
static _Thread_local size_t fail_at;

static bool fails(int error_number)
{
    if (!fail_at || --fail_at)
        return false;
    errno = error_number;
    return true;
}

#define DECLARE(result, name, ...)     \
    result __real_##name(__VA_ARGS__); \
    result __wrap_##name(__VA_ARGS__);

DECLARE(int, epoll_create1, int flags)
DECLARE(int, epoll_ctl, int epoll_fd, int op, int fd, struct epoll_event *event)
DECLARE(int, eventfd, unsigned first, int flags)
DECLARE(int, socket, int domain, int type, int protocol)
DECLARE(int, connect, int fd, const struct sockaddr *address, socklen_t len)
DECLARE(int, getsockopt, int fd, int level, int name, void *value, socklen_t *len)
DECLARE(ssize_t, recv, int fd, void *to, size_t len, int flags)
DECLARE(ssize_t, send, int fd, const void *bytes, size_t len, int flags)
DECLARE(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
        void *(*run)(void *), void *arg)

int __wrap_epoll_create1(int flags)
{
    return fails(EMFILE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
    bool failed = op != EPOLL_CTL_DEL && fails(ENOSPC); /* removing never fails */
    return failed ? -1 : __real_epoll_ctl(epoll_fd, op, fd, event);
}

int __wrap_eventfd(unsigned first, int flags)
{
    return fails(EMFILE) ? -1 : __real_eventfd(first, flags);
}

int __wrap_socket(int domain, int type, int protocol)
{
    return fails(EMFILE) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    return fails(ENETUNREACH) ? -1 : __real_connect(fd, address, len);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    return fails(ENOBUFS) ? -1 : __real_getsockopt(fd, level, name, value, len);
}

ssize_t __wrap_recv(int fd, void *to, size_t len, int flags)
{
    return fails(ECONNRESET) ? -1 : __real_recv(fd, to, len, flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
    return fails(ECONNRESET) ? -1 : __real_send(fd, bytes, len, flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg)
{
    return fails(EAGAIN) ? EAGAIN : __real_pthread_create(thread, attributes, run, arg);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* The server closes its end of a connection on its own thread. */
static void wait_for_descriptors(size_t count)
{
    for (int i = 0; i < 5000 && open_descriptors() != count; i++)
        usleep(1000);
    assert_int_equal(open_descriptors(), count);
}

struct server {
    struct etcd_cluster cluster;
    struct etcd_member member;
    char endpoint[ADDRESS_TEXT_BYTES + 16];
};

static int setup(void **state)
{
    static struct server server;
    char address[ADDRESS_TEXT_BYTES];
    etcd_cluster_init(&server.cluster);
    etcd_member_init(&server.member, &server.cluster);
    etcd_member_start(&server.member, network_posix());
    address_format(&server.member.bound.address, address);
    snprintf(server.endpoint, sizeof(server.endpoint), "http://%s", address);
    *state = &server;
    return 0;
}

static int teardown(void **state)
{
    etcd_member_fini(&((struct server *)*state)->member);
    return 0;
}

/* Reads twice; the connection that is used for the second one may be lost by then. */
static void use(vigil_client *client)
{
    for (int i = 0; i < 2; i++) {
        vigil_call *call = vigil_get(client, vigil_text("k"));
        if (vigil_call_run(call) != VIGIL_OK)
            fail_msg("%s", vigil_call_error(call)->text);
        vigil_call_free(call);
    }
}

/* False: there were fewer system calls. */
static bool run_without(const struct server *server, size_t nth, int own_thread)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    size_t descriptors = open_descriptors();
    vigil_options_init(&options);
    options.endpoints = server->endpoint;
    options.own_thread = own_thread;
    options.call_timeout_ms = 60000;
    options.backoff_min_ms = options.backoff_max_ms = 1;
    fail_at = nth;
    int code = vigil_client_new(&options, &client, &error);
    if (code == VIGIL_OK) {
        use(client);
        vigil_client_free(client);
    } else {
        assert_true(code == VIGIL_ERROR_SYSTEM || code == VIGIL_ERROR_MEMORY);
        assert_true(error.text[0] != '\0');
    }
    bool failed = fail_at == 0;
    fail_at = 0;
    wait_for_descriptors(descriptors);
    return failed;
}

static void every_system_call_may_fail(void **state)
{
    size_t nth = 1;
    while (run_without(*state, nth, 0))
        nth++;
    assert_true(nth > 12);
}

/* Those of the function that creates the client and its thread. */
static void every_system_call_of_a_start_may_fail(void **state)
{
    size_t nth = 1;
    while (run_without(*state, nth, 1))
        nth++;
    assert_true(nth > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_system_call_may_fail),
        cmocka_unit_test(every_system_call_of_a_start_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
