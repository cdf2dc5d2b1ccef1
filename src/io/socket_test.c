#include "io/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct address loopback(void)
{
    struct address address;
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address), ST_OK);
    return address;
}

static struct listener listen_on(struct address address)
{
    struct listener listener = {0};
    struct error error;
    enum status status = network_listen(network_posix(), &address, &listener, &error);
    if (status != ST_OK)
        fail_msg("%s", error.text);
    return listener;
}

static void wait_readable(int handle)
{
    struct pollfd one = {.fd = handle, .events = POLLIN};
    assert_int_equal(poll(&one, 1, 5000), 1);
}

static void join(struct listener *listener, struct socket *ret_client, struct socket *ret_server)
{
    struct error error;
    assert_int_equal(network_connect(network_posix(), &listener->address, ret_client, &error),
                     ST_OK);
    wait_readable(listener->handle);
    assert_int_equal(listener_accept(listener, ret_server), ST_OK);
}

static void bytes_and_ends_are_transferred_in_both_directions(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    assert_true(address_port(&listener.address) != 0);
    struct socket client, server;
    join(&listener, &client, &server);

    size_t n;
    char got[16];
    assert_int_equal(socket_read(&server, got, sizeof(got), &n), ST_AGAIN);
    assert_int_equal(socket_write(&client, SLICE_LITERAL("hello"), &n), ST_OK);
    assert_int_equal(n, 5);
    wait_readable(server.handle);
    assert_int_equal(socket_read(&server, got, sizeof(got), &n), ST_OK);
    assert_memory_equal(got, "hello", 5);

    socket_shutdown(&client);
    wait_readable(server.handle);
    assert_int_equal(socket_read(&server, got, sizeof(got), &n), ST_END);
    assert_int_equal(socket_write(&server, SLICE_LITERAL("bye"), &n), ST_OK);
    wait_readable(client.handle);
    assert_int_equal(socket_read(&client, got, sizeof(got), &n), ST_OK);
    assert_int_equal(n, 3);

    socket_close(&server);
    socket_close(&client);
    socket_close(&client);
    listener_close(&listener);
}

static void accepted_sockets_inherit_the_options_of_their_listener(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    struct socket client, server;
    join(&listener, &client, &server);
    int value = 0;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(server.handle, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    assert_int_equal(value, 1);
    assert_int_equal(getsockopt(server.handle, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &len), 0);
    assert_int_equal(value, 128 * 1024);
    socket_close(&server);
    socket_close(&client);
    listener_close(&listener);
}

/* And the process is not ended by SIGPIPE. */
static void writing_to_a_full_or_broken_socket_is_reported(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    static char big[1 << 20];
    struct listener listener = listen_on(loopback());
    struct socket client, server;
    join(&listener, &client, &server);
    size_t n;
    enum status status;
    while ((status = socket_write(&server, slice_of(big, sizeof(big)), &n)) == ST_OK)
        continue;
    assert_int_equal(status, ST_AGAIN);
    socket_close(&client);
    for (int i = 0; i < 5000 && status == ST_AGAIN; i++) {
        usleep(1000);
        status = socket_write(&server, slice_of(big, 1), &n);
    }
    struct iovec two[] = {{big, 1}, {big, 1}};
    assert_int_equal(status, ST_CLOSED);
    assert_int_equal(socket_write(&server, slice_of(big, 1), &n), ST_CLOSED);
    assert_int_equal(socket_writev(&server, two, 2, &n), ST_CLOSED);
    socket_close(&server);
    listener_close(&listener);
}

static void port_in_use_is_an_error_with_a_message(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    struct listener second = {0};
    struct error error;
    assert_int_equal(network_listen(network_posix(), &listener.address, &second, &error),
                     ST_IN_USE);
    assert_non_null(strstr(error.text, "listen tcp 127.0.0.1:"));
    assert_non_null(strstr(error.text, "bind: address already in use"));
    listener_close(&second);
    listener_close(&listener);
}

static void stale_socket_file_is_replaced_and_one_in_use_is_not(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/vigil-socket-test-%d.sock", getpid());
    struct address address;
    assert_int_equal(address_from_path(slice_from_text(path), &address), ST_OK);

    struct listener first = listen_on(address);
    struct listener second = {0};
    struct error error;
    assert_int_equal(network_listen(network_posix(), &address, &second, &error), ST_IN_USE);
    close(first.handle); /* as if its process had terminated: the file remains */
    second = listen_on(address);
    struct socket client, server;
    join(&second, &client, &server);
    socket_close(&client);
    socket_close(&server);
    listener_close(&second);
    struct stat found;
    assert_int_not_equal(stat(path, &found), 0);
}

static void wait_writable(int handle)
{
    struct pollfd one = {.fd = handle, .events = POLLOUT};
    assert_int_equal(poll(&one, 1, 5000), 1);
}

static void failed_connection_says_why(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    struct address closed = listener.address;
    struct socket client, server;
    struct error error;
    char reason[SOCKET_REASON_BYTES];
    join(&listener, &client, &server);
    wait_writable(client.handle);
    assert_int_equal(socket_connected(&client), ST_OK);
    socket_close(&client);
    socket_close(&server);
    listener_close(&listener);

    assert_int_equal(network_connect(network_posix(), &closed, &client, &error), ST_OK);
    wait_writable(client.handle);
    assert_int_equal(socket_connected(&client), ST_CLOSED);
    socket_reason_format(client.error_number, reason);
    assert_string_equal(reason, "connection refused");
    socket_close(&client);

    struct address path;
    assert_int_equal(address_from_path(SLICE_LITERAL("/nonexistent/socket"), &path), ST_OK);
    assert_int_equal(network_connect(network_posix(), &path, &client, &error), ST_CLOSED);
    assert_string_equal(error.text, "no such file or directory");
}

static void connection_comes_from_the_source(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    struct socket client, server;
    struct address source, seen;
    struct error error;
    char text[ADDRESS_TEXT_BYTES];
    struct network network = *network_posix();
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.77"), 0, &source), ST_OK);
    network.source = &source;
    assert_int_equal(network_connect(&network, &listener.address, &client, &error), ST_OK);
    wait_readable(listener.handle);
    assert_int_equal(listener_accept(&listener, &server), ST_OK);
    assert_int_equal(socket_peer(&server, &seen), ST_OK);
    address_format(&seen, text);
    assert_int_equal(strncmp(text, "127.0.0.77:", 11), 0);
    socket_close(&client);
    socket_close(&server);
    listener_close(&listener);

    /* An address of another machine. */
    assert_int_equal(address_from_host(SLICE_LITERAL("192.0.2.1"), 0, &source), ST_OK);
    assert_int_equal(network_connect(&network, &listener.address, &client, &error), ST_CLOSED);
    assert_string_equal(error.text, "cannot assign requested address");
}

static void broken_connection_says_why(void **state)
{
    (void)state;
    struct listener listener = listen_on(loopback());
    struct socket client, server;
    join(&listener, &client, &server);
    size_t n;
    char reason[SOCKET_REASON_BYTES], got[16];
    assert_int_equal(socket_write(&client, SLICE_LITERAL("unread"), &n), ST_OK);
    wait_readable(server.handle);
    socket_close(&server);
    wait_readable(client.handle);
    assert_int_equal(socket_read(&client, got, sizeof(got), &n), ST_CLOSED);
    socket_reason_format(client.error_number, reason);
    assert_string_equal(reason, "connection reset by peer");
    socket_close(&client);
    listener_close(&listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_ends_are_transferred_in_both_directions),
        cmocka_unit_test(accepted_sockets_inherit_the_options_of_their_listener),
        cmocka_unit_test(writing_to_a_full_or_broken_socket_is_reported),
        cmocka_unit_test(port_in_use_is_an_error_with_a_message),
        cmocka_unit_test(failed_connection_says_why),
        cmocka_unit_test(connection_comes_from_the_source),
        cmocka_unit_test(broken_connection_says_why),
        cmocka_unit_test(stale_socket_file_is_replaced_and_one_in_use_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
