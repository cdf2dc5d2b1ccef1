#include "cmd/serve/announce/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A manager's socket. The name begins with '@' (no file) or '/'. */
static int listen_as(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, address_len), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void assert_told(const char *name)
{
    char text[64] = {0};
    int fd = listen_as(name);
    notify_manager("READY=1");
    assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
    assert_string_equal(text, "READY=1");
    close(fd);
}

static void the_manager_is_notified_on_either_kind_of_socket(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "@vigil-notify-%d", (int)getpid());
    assert_told(name);
    snprintf(name, sizeof(name), "/tmp/vigil-notify-%d", (int)getpid());
    assert_told(name);
    unlink(name);
}

static void a_missing_manager_is_not_an_error(void **state)
{
    (void)state;
    char long_name[300];
    memset(long_name, 'x', sizeof(long_name));
    long_name[0] = '/';
    long_name[sizeof(long_name) - 1] = '\0';
    const char *const names[] = {"", "relative", "/nowhere/at/all", long_name};
    for (size_t i = 0; i < 4; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        notify_manager("READY=1");
    }
    unsetenv("NOTIFY_SOCKET");
    notify_manager("READY=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manager_is_notified_on_either_kind_of_socket),
        cmocka_unit_test(a_missing_manager_is_not_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
