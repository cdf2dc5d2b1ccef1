/* The reasons are those of real members (etcd 3.4 and 3.7), as the client library reports them. */
#include "mirror/link/hint.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct upstream_options options = {
    .endpoints = "http://10.0.0.1:2379,https://10.0.0.2:2379,10.0.0.3:2379"};
static const struct upstream_options with_user = {.endpoints = "http://a:1", .user = "vigil"};

static void expect(const struct upstream_options *of, const char *reason, const char *part)
{
    const char *hint = hint_for(of, reason);
    if (!part)
        assert_string_equal(hint, "");
    else if (!strstr(hint, part) || strncmp(hint, "; ", 2) != 0)
        fail_msg("\"%s\" has the hint \"%s\"", reason, hint);
}

static void an_endpoint_with_the_wrong_scheme_is_recognised(void **state)
{
    (void)state;
    expect(&options, "cannot connect to 10.0.0.1:2379: the server closed the connection",
           "as https://");
    expect(&options, "cannot connect to 10.0.0.3:2379: connection reset by peer", "as https://");
    expect(&options, "cannot connect to 10.0.0.2:2379: EOF", "as http://");
    expect(&options, "cannot connect to 10.0.0.2:2379: wrong version number", "as http://");
    expect(&options, "cannot connect to 10.0.0.4:2379: EOF", NULL);
}

static void other_failures_of_a_connection_have_no_such_hint(void **state)
{
    (void)state;
    expect(&options, "cannot connect to 10.0.0.1:2379: connection refused", NULL);
    expect(&options, "lost the connection to 10.0.0.2:2379: EOF", NULL);
    expect(&options, "the cluster does not answer", NULL);
    expect(&options, "cannot connect to 10.0.0.1:2379: frame too large", "client URL");
}

static void the_flag_to_look_at_is_named(void **state)
{
    (void)state;
    expect(&options, "etcdserver: user name is empty", "give --upstream-user");
    expect(&with_user, "etcdserver: user name is empty", NULL);
    expect(&with_user, "etcdserver: permission denied", "--upstream-user must be allowed");
    expect(&with_user,
           "the watch is refused: cannot authenticate: etcdserver: authentication failed, invalid "
           "user ID or password",
           "--upstream-password-file");
    expect(&options,
           "cannot connect to 10.0.0.2:2379: tls: failed to verify certificate: x509: certificate "
           "signed by unknown authority",
           "--upstream-cacert");
    expect(&options, "cannot connect to 10.0.0.2:2379: remote error: tls: certificate required",
           "--upstream-cert");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_with_the_wrong_scheme_is_recognised),
        cmocka_unit_test(other_failures_of_a_connection_have_no_such_hint),
        cmocka_unit_test(the_flag_to_look_at_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
