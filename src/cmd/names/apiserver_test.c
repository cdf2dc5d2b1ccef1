#include "cmd/names/apiserver.h"

#include "cmd/names/apiserver_ignored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct apiserver_flags flags;
    struct apiserver_args args;
    struct error error;
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    arena_init(&fixture.arena, NULL, 0, 1 << 20);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    return 0;
}

/* Up to NULL. */
static enum status parse(struct fixture *f, ...)
{
    enum { ARGS_MAX = 16 };
    char *args[ARGS_MAX];
    int count = 0;
    va_list list;
    va_start(list, f);
    for (char *arg; (arg = va_arg(list, char *));) {
        assert_true(count < ARGS_MAX);
        args[count++] = arg;
    }
    va_end(list);
    return apiserver_flags_parse(&f->flags, &f->arena, count, args, &f->error);
}

static bool has_arg(const struct fixture *f, const char *arg)
{
    for (int i = 0; i < f->args.count; i++)
        if (strcmp(f->args.args[i], arg) == 0)
            return true;
    return false;
}

static void flags_are_read_as_pflag_reads_them(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, "--secure-port=1", "--secure-port", "2", "--allow-privileged",
                           "--etcd_prefix=/registry", "--etcd-servers=a", "--etcd-servers", "b",
                           "-v3", NULL),
                     ST_OK);
    assert_string_equal(apiserver_flags_get(&f->flags, "secure-port"), "2");
    assert_string_equal(apiserver_flags_get(&f->flags, "allow-privileged"), "true");
    assert_string_equal(apiserver_flags_get(&f->flags, "etcd-prefix"), "/registry");
    assert_string_equal(apiserver_flags_get(&f->flags, "etcd-servers"), "a,b");
    assert_string_equal(apiserver_flags_get(&f->flags, "v"), "3");
    assert_null(apiserver_flags_get(&f->flags, "bind-address"));
    assert_int_equal(parse(f, "-hv", "4", "--", NULL), ST_OK);
    assert_string_equal(apiserver_flags_get(&f->flags, "help"), "true");
    assert_string_equal(apiserver_flags_get(&f->flags, "v"), "4");
}

static void refused(struct fixture *f, enum status status, const char *text)
{
    assert_int_equal(status, ST_INVALID);
    assert_string_equal(f->error.text, text);
}

static void mistakes_have_the_texts_of_kube_apiserver(void **state)
{
    struct fixture *f = *state;
    refused(f, parse(f, "--insecure-port=0", NULL), "unknown flag: --insecure-port");
    refused(f, parse(f, "-z", NULL), "unknown shorthand flag: 'z' in -z");
    refused(f, parse(f, "--etcd-servers", NULL), "flag needs an argument: --etcd-servers");
    refused(f, parse(f, "-v", NULL), "flag needs an argument: 'v' in -v");
    refused(f, parse(f, "--=x", NULL), "bad flag syntax: --=x");
    refused(f, parse(f, "--allow-privileged=maybe", NULL),
            "invalid argument \"maybe\" for \"--allow-privileged\" flag: strconv.ParseBool: "
            "parsing \"maybe\": invalid syntax");
    refused(f, parse(f, "--allow-privileged", "word", NULL),
            "\"kube-apiserver\" does not take any arguments, got [\"word\"]");
}

static enum status translate(struct fixture *f)
{
    return apiserver_translate(&f->flags, &f->arena, &f->args, &f->error);
}

static void flags_of_envtest_are_translated(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, "--allow-privileged=true", "--bind-address=127.0.0.1",
                           "--cert-dir=/nowhere", "--client-ca-file=/nowhere/ca.crt",
                           "--etcd-servers=http://127.0.0.1:1", "--secure-port=7", NULL),
                     ST_OK);
    assert_int_equal(translate(f), ST_OK);
    assert_true(has_arg(f, "--listen-kube-urls=https://127.0.0.1:7"));
    assert_true(has_arg(f, "--listen-client-urls="));
    assert_true(has_arg(f, "--upstream-endpoints=http://127.0.0.1:1"));
    assert_true(has_arg(f, "--kube-client-ca-file=/nowhere/ca.crt"));
    assert_true(has_arg(f, "--auto-tls=true")); /* there is no pair in the directory */
    assert_true(has_arg(f, "--kube-allow-privileged=true"));
    assert_true(has_arg(f, "--kube-managed-fields=all"));
    assert_string_equal(f->args.without_effect, "");
}

static void addresses_of_version_6_are_bracketed(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, "--bind-address=::1", "--etcd-servers=x", "--tls-cert-file=c",
                           "--tls-private-key-file=k", "--tls-min-version=VersionTLS13", NULL),
                     ST_OK);
    assert_int_equal(translate(f), ST_OK);
    assert_true(has_arg(f, "--listen-kube-urls=https://[::1]:6443"));
    assert_true(has_arg(f, "--cert-file=c"));
    assert_true(has_arg(f, "--key-file=k"));
    assert_true(has_arg(f, "--tls-min-version=TLS1.3"));
    assert_false(has_arg(f, "--auto-tls=true"));
    assert_true(has_arg(f, "--kube-allow-privileged=false"));
}

static void wrong_values_are_refused(void **state)
{
    static const struct {
        const char *flag, *text;
    } rows[] = {
        {"--secure-port=x", "invalid argument \"x\" for \"--secure-port\" flag: strconv.ParseInt: "
                            "parsing \"x\": invalid syntax"},
        {"--secure-port=0", "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be "
                            "turned off with 0"},
        {"--secure-port=65536", "--secure-port 65536 must be between 1 and 65535, inclusive. It "
                                "cannot be turned off with 0"},
        {"--etcd-prefix=/other", "--etcd-prefix /other: Vigil keeps objects below /registry"},
        {"--tls-min-version=TLS1.2", "unknown tls version \"TLS1.2\""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(parse(f, "--etcd-servers=x", rows[i].flag, NULL), ST_OK);
        refused(f, translate(f), rows[i].text);
    }
    assert_int_equal(parse(f, NULL), ST_OK);
    refused(f, translate(f), "--etcd-servers must be specified");
}

static void every_flag_of_the_list_is_accepted(void **state)
{
    struct fixture *f = *state;
    const struct apiserver_flag *flag;
    char arg[128];
    for (size_t i = 0; (flag = apiserver_flag_at(i)); i++) {
        snprintf(arg, sizeof(arg), "--%s=1", flag->name);
        assert_int_equal(parse(f, arg, NULL), ST_OK);
        assert_string_equal(apiserver_flags_get(&f->flags, flag->name), "1");
    }
}

static void every_flag_has_an_effect_or_a_decision(void **state)
{
    struct fixture *f = *state;
    const struct apiserver_flag *flag;
    const struct apiserver_ignored *row;
    char arg[128];
    for (size_t i = 0; (flag = apiserver_flag_at(i)); i++)
        if (apiserver_has_effect(flag->name) == !!apiserver_ignored_flag(flag->name))
            fail_msg("--%s needs either a translation (apiserver.c) or a row in "
                     "apiserver_ignored.c",
                     flag->name);
    for (size_t i = 0; (row = apiserver_ignored_at(i)); i++) {
        snprintf(arg, sizeof(arg), "--%s=1", row->name);
        assert_int_equal(parse(f, arg, NULL), ST_OK); /* kube-apiserver has it */
    }
}

static void flags_on_which_one_relies_are_refused(void **state)
{
    static const char *const rows[] = {
        "--encryption-provider-config=f",
        "--audit-policy-file=f",
        "--audit-log-path=f",
        "--oidc-issuer-url=u",
        "--oidc-client-id=c",
        "--anonymous-auth=false",
        "--enable-admission-plugins=PodNodeSelector",
        "--authorization-config=f",
        "--enable-admission-plugins=Priority,EventRateLimit",
        "--enable-admission-plugins=AlwaysAdmit",
        "--enable-admission-plugins=NamespaceExists",
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(parse(f, "--etcd-servers=x", rows[i], NULL), ST_OK);
        assert_int_equal(translate(f), ST_INVALID);
        assert_non_null(strstr(f->error.text, " has no effect in Vigil: "));
        assert_non_null(strstr(f->error.text, "--accept-ignored-flags"));
        assert_int_equal(
            parse(f, "--etcd-servers=x", rows[i], "--accept-ignored-flags=false", NULL), ST_OK);
        assert_int_equal(translate(f), ST_INVALID);
        assert_int_equal(parse(f, "--etcd-servers=x", rows[i], "--accept-ignored-flags", NULL),
                         ST_OK);
        assert_int_equal(translate(f), ST_OK);
        assert_string_equal(f->args.without_effect, "");
        assert_true(*f->args.not_enforced);
    }
    assert_int_equal(parse(f, "--etcd-servers=x", "--encryption-provider-config=f", NULL), ST_OK);
    refused(f, translate(f),
            "--encryption-provider-config has no effect in Vigil: objects are stored without "
            "encryption. Remove it, or add --accept-ignored-flags to start without the effect of "
            "this flag and of others like it");
    assert_int_equal(parse(f, "--etcd-servers=x", "--enable-admission-plugins=Nothing", NULL),
                     ST_OK);
    refused(f, translate(f), "enable-admission-plugins plugin \"Nothing\" is unknown");
    assert_int_equal(parse(f, "--etcd-servers=x", "--disable-admission-plugins=Nothing", NULL),
                     ST_OK);
    refused(f, translate(f), "disable-admission-plugins plugin \"Nothing\" is unknown");
    assert_int_equal(parse(f, "--etcd-servers=x",
                           "--disable-admission-plugins=Priority,PodSecurity",
                           "--enable-admission-plugins=PodSecurity", NULL),
                     ST_OK);
    refused(f, translate(f),
            "[PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped");
}

/* As in the manifests that kubeadm writes. */
static void flags_of_kubeadm_are_accepted(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        parse(f, "--etcd-servers=x", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
              "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
              "--kubelet-client-certificate=c", "--kubelet-client-key=k",
              "--kubelet-preferred-address-types=InternalIP", "--proxy-client-cert-file=c",
              "--proxy-client-key-file=k", "--requestheader-allowed-names=front-proxy-client",
              "--requestheader-client-ca-file=c", "--requestheader-username-headers=X-Remote-User",
              "--anonymous-auth=1", NULL),
        ST_OK);
    assert_int_equal(translate(f), ST_OK);
    assert_string_equal(f->args.not_enforced, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(flags_are_read_as_pflag_reads_them, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_have_the_texts_of_kube_apiserver, setup, teardown),
        cmocka_unit_test_setup_teardown(flags_of_envtest_are_translated, setup, teardown),
        cmocka_unit_test_setup_teardown(addresses_of_version_6_are_bracketed, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_values_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_flag_has_an_effect_or_a_decision, setup, teardown),
        cmocka_unit_test_setup_teardown(flags_on_which_one_relies_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(flags_of_kubeadm_are_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(every_flag_of_the_list_is_accepted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
