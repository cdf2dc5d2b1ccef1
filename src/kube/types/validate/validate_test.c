#include "kube/types/validate/validate.h"

#include "kube/types/validate/check.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { ARENA_BYTES = 128 << 20, MANY = 100000 };

struct fixture {
    struct arena arena;
    struct kube_field_errors errors;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    f->errors.arena = &f->arena;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static struct json_node *read_json(struct fixture *f, struct slice text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(&f->arena, text, &root, &error), ST_OK);
    return root;
}

static const struct kube_kind *kind_of(const char *group, const char *version, const char *plural)
{
    const struct kube_kind *kind = kube_builtin_find(
        slice_from_text(group), slice_from_text(version), slice_from_text(plural));
    assert_non_null(kind);
    return kind;
}

static bool validate(struct fixture *f, const struct kube_kind *kind, const char *json,
                     const char *old)
{
    f->errors = (struct kube_field_errors){.arena = &f->arena};
    return kube_validate(&f->arena, kind, read_json(f, slice_from_text(json)),
                         old ? read_json(f, slice_from_text(old)) : NULL, KUBE_VALIDATE_OBJECT,
                         false, &f->errors);
}

static void assert_error(const struct kube_field_error *error, const char *field,
                         const char *message)
{
    char text[1024];
    assert_non_null(error);
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(error->field));
    assert_string_equal(text, field);
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(error->message));
    assert_string_equal(text, message);
}

static void errors_have_kubernetes_texts_in_its_order(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *services = kind_of("", "v1", "services");
    assert_false(validate(
        f, services,
        "{\"spec\":{\"ports\":[{\"port\":0,\"protocol\":\"X\"},{\"name\":\"a\",\"port\":1}]}}",
        NULL));
    assert_int_equal(f->errors.count, 4);
    const struct kube_field_error *error = f->errors.first;
    assert_error(error, "spec.ports[0].name", "Required value");
    error = error->next;
    assert_error(error, "spec.ports[0].port",
                 "Invalid value: 0: must be between 1 and 65535, inclusive");
    error = error->next;
    assert_error(error, "spec.ports[0].protocol",
                 "Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"");
}

static void valid_and_unknown_objects_pass(void **state)
{
    struct fixture *f = *state;
    assert_true(
        validate(f, kind_of("", "v1", "services"), "{\"spec\":{\"ports\":[{\"port\":1}]}}", NULL));
    assert_true(validate(f, kind_of("resource.k8s.io", "v1", "resourceclaims"), "{}", NULL));
}

static void immutable_fields_are_compared_with_the_old_object(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *secrets = kind_of("", "v1", "secrets");
    assert_true(validate(f, secrets, "{\"type\":\"a\"}", "{\"type\":\"a\"}"));
    assert_false(validate(f, secrets, "{\"type\":\"b\"}", "{\"type\":\"a\"}"));
    assert_error(f->errors.first, "type", "Invalid value: \"b\": field is immutable");
}

static void generated_selectors_are_not_contradicted(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *jobs = kind_of("batch", "v1", "jobs");
#define JOB(selector, name)                                                                      \
    "{\"metadata\":{\"name\":\"j\",\"uid\":\"u\"},\"spec\":{\"selector\":{\"matchLabels\":"      \
    "{" selector "\"job-name\":\"j\"}},\"template\":{\"metadata\":{\"labels\":{\"z\":\"y\","     \
    "\"controller-uid\":\"u\",\"job-name\":\"" name "\",\"batch.kubernetes.io/job-name\":\"j\"," \
    "\"batch.kubernetes.io/controller-uid\":\"u\"}},\"spec\":{\"restartPolicy\":\"Never\","      \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}"
    assert_true(validate(f, jobs, JOB("", "j"), NULL));
    assert_false(validate(f, jobs, JOB("\"z\":\"y\",", "j"), NULL));
    assert_error(
        f->errors.first, "spec.selector",
        "Invalid value: {\"matchLabels\":{\"job-name\":\"j\",\"z\":\"y\"}}: `selector` not "
        "auto-generated");
    assert_false(validate(f, jobs, JOB("", "k"), NULL));
    assert_error(f->errors.first, "spec.template.metadata.labels[job-name]",
                 "Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u\","
                 "\"batch.kubernetes.io/job-name\":\"j\",\"controller-uid\":\"u\","
                 "\"job-name\":\"k\",\"z\":\"y\"}: must be 'j'");
}

static void pods_without_account_have_no_token(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *pods = kind_of("", "v1", "pods");
#define TOKEN(account)                                                                       \
    "{\"spec\":{" account "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{" \
    "\"name\":\"v\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"path\":\"t\"}}]}}]}}"
    assert_true(validate(f, pods, TOKEN("\"serviceAccountName\":\"a\","), NULL));
    assert_false(validate(f, pods, TOKEN(""), NULL));
    assert_error(f->errors.first, "spec.volumes[0].projected.sources[0].serviceAccountToken",
                 "Forbidden: must not be specified when serviceAccountName is not set");
}

static bool validate_approval(struct fixture *f, const char *json, const char *old)
{
    f->errors = (struct kube_field_errors){.arena = &f->arena};
    return kube_validate(&f->arena,
                         kind_of("certificates.k8s.io", "v1", "certificatesigningrequests"),
                         read_json(f, slice_from_text(json)), read_json(f, slice_from_text(old)),
                         KUBE_VALIDATE_APPROVAL, false, &f->errors);
}

static void approvals_have_the_rules_of_a_status(void **state)
{
    struct fixture *f = *state;
#define CONDITION(type) "{\"type\":\"" type "\",\"status\":\"True\"}"
#define REQUEST(list) "{\"status\":{\"conditions\":[" list "]}}"
#define BOTH CONDITION("Approved") "," CONDITION("Denied")
    assert_true(validate_approval(f, REQUEST(CONDITION("Approved")), REQUEST("")));
    assert_false(validate_approval(f, REQUEST(""), REQUEST(CONDITION("Approved"))));
    assert_error(f->errors.first, "status.conditions",
                 "Forbidden: updates may not remove a condition of type \"Approved\"");
    assert_false(validate_approval(f, REQUEST(BOTH), REQUEST(CONDITION("Approved"))));
    assert_error(
        f->errors.first, "status.conditions",
        "Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive");
    assert_false(validate_approval(f, REQUEST(CONDITION("a") "," CONDITION("a")), REQUEST("")));
    assert_error(f->errors.first, "status.conditions[1].type", "Duplicate value: \"a\"");
    /* What was stored before the rules stays allowed. */
    assert_true(validate_approval(f, REQUEST(BOTH "," CONDITION("a")), REQUEST(BOTH)));
    assert_true(validate_approval(f, REQUEST(CONDITION("a") "," CONDITION("a")),
                                  REQUEST(CONDITION("b") "," CONDITION("b"))));
    assert_false(validate_approval(f, REQUEST(CONDITION("")), REQUEST("")));
    assert_true(validate_approval(f, REQUEST(CONDITION("")), REQUEST(CONDITION(""))));
}

static void pods_keep_their_spec(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *pods = kind_of("", "v1", "pods");
    static const char *const old =
        "{\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}";
    /* An image may change, and defaults are not a change. */
    assert_true(validate(f, pods,
                         "{\"spec\":{\"nodeName\":\"n\",\"restartPolicy\":\"Always\","
                         "\"containers\":[{\"name\":\"c\",\"image\":\"j\","
                         "\"imagePullPolicy\":\"Always\"}]}}",
                         old));
    assert_false(validate(
        f, pods,
        "{\"spec\":{\"nodeName\":\"m\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}", old));
    assert_int_equal(f->errors.count, 1);
    assert_true(slice_is(f->errors.first->field, "spec"));
    assert_false(validate(f, pods, "{\"spec\":{\"nodeName\":\"n\",\"containers\":[]}}", old));
    assert_error(f->errors.first->next, "spec.containers",
                 "Forbidden: pod updates may not add or remove containers");
}

static void volumes_of_claims_may_be_mounted(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *sets = kind_of("apps", "v1", "statefulsets");
#define SET(mounted)                                                                        \
    "{\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":"   \
    "{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"," \
    "\"volumeMounts\":[{\"name\":\"" mounted "\",\"mountPath\":\"/m\"}]}]}},"               \
    "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"v\"},\"spec\":{\"accessModes\":"   \
    "[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1\"}}}}]}}"
    assert_true(validate(f, sets, SET("v"), NULL));
    assert_false(validate(f, sets, SET("w"), NULL));
    assert_error(f->errors.first, "spec.template.spec.containers[0].volumeMounts[0].name",
                 "Not found: \"w\"");
}

/* -- Work -- */

static int64_t cpu_ms(void)
{
    return (int64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

static void append_item(struct buf *to, const char *item, int number)
{
    assert_int_equal(buf_append_text(to, number ? "," : ""), ST_OK);
    for (; *item; item++) {
        enum status status = *item == '#'   ? buf_append_format(to, "%d", number)
                             : *item == '$' ? buf_append_format(to, "%d", number % 65535 + 1)
                                            : buf_append(to, slice_of(item, 1));
        assert_int_equal(status, ST_OK);
    }
}

/* A list of MANY items between two texts, in an empty arena; # in an item is its number, and $ a
 * port. */
static struct slice many(struct fixture *f, const char *before, const char *item, const char *after)
{
    struct buf text = {0};
    struct slice copy;
    arena_fini(&f->arena);
    arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    assert_int_equal(buf_append_text(&text, before), ST_OK);
    for (int i = 0; i < MANY; i++)
        append_item(&text, item, i);
    assert_int_equal(buf_append_text(&text, after), ST_OK);
    assert_int_equal(arena_dup(&f->arena, buf_slice(&text), &copy), ST_OK);
    buf_fini(&text);
    return copy;
}

static void assert_bounded(struct fixture *f, const struct kube_kind *kind, struct slice json)
{
    const struct json_node *object = read_json(f, json);
    int64_t before = cpu_ms();
    f->errors = (struct kube_field_errors){.arena = &f->arena};
    (void)kube_validate_all(&f->arena, kind, object, object, KUBE_VALIDATE_OBJECT, &f->errors);
    assert_false(f->errors.no_memory);
    assert_true(f->errors.count <= KUBE_FIELD_ERRORS_MAX);
    /* A few hundred milliseconds with sanitizers; quadratic work takes minutes. */
    assert_true(cpu_ms() - before < 10000);
}

static void large_lists_take_bounded_time(void **state)
{
    struct fixture *f = *state;
    assert_bounded(f, kind_of("", "v1", "services"),
                   many(f, "{\"spec\":{\"ports\":[", "{\"name\":\"p#\",\"port\":$}", "]}}"));
    assert_bounded(f, kind_of("", "v1", "services"),
                   many(f, "{\"spec\":{\"ports\":[", "{\"name\":\"p\",\"x\":#,\"port\":1}", "]}}"));
    const struct kube_kind *pods = kind_of("", "v1", "pods");
    assert_bounded(
        f, pods,
        many(f, "{\"spec\":{\"containers\":[", "{\"name\":\"c#\",\"image\":\"i\"}", "]}}"));
    assert_bounded(f, pods,
                   many(f, "{\"spec\":{\"containers\":[", "{\"name\":\"c\",\"x\":#}", "]}}"));
    assert_bounded(f, pods,
                   many(f, "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"ports\":[",
                        "{\"name\":\"p#\",\"containerPort\":$,\"hostPort\":1}", "]}]}}"));
    assert_bounded(f, pods,
                   many(f, "{\"spec\":{\"containers\":[{\"name\":\"c\",\"volumeMounts\":[",
                        "{\"name\":\"v#\",\"mountPath\":\"/#\"}", "]}]}}"));
    assert_bounded(f, pods, many(f, "{\"spec\":{\"tolerations\":[", "{\"key\":\"k#\"}", "]}}"));
    assert_bounded(f, pods,
                   many(f, "{\"spec\":{\"volumes\":[", "{\"name\":\"v#\",\"emptyDir\":{}}", "]}}"));
    assert_bounded(f, kind_of("apps", "v1", "statefulsets"),
                   many(f, "{\"spec\":{\"volumeClaimTemplates\":[",
                        "{\"metadata\":{\"name\":\"v#\"}}", "],\"template\":{\"spec\":{}}}}"));
    assert_bounded(f, kind_of("", "v1", "configmaps"),
                   many(f, "{\"data\":{", "\"key#\":\"\"", "}}"));
    assert_bounded(f, kind_of("", "v1", "resourcequotas"),
                   many(f, "{\"spec\":{\"hard\":{", "\"count/x#\":\"1\"", "}}}"));
}

static void errors_show_a_bounded_part_of_a_value(void **state)
{
    struct fixture *f = *state;
    struct slice json = many(f, "{\"data\":{\"/", "xxxxxxxxxx#", "\":\"\"}}");
    f->errors = (struct kube_field_errors){.arena = &f->arena};
    assert_false(kube_validate(&f->arena, kind_of("", "v1", "configmaps"), read_json(f, json), NULL,
                               KUBE_VALIDATE_OBJECT, false, &f->errors));
    assert_true(f->errors.first->field.len < 5000 && f->errors.first->message.len < 6000);
}

/* -- Values -- */

static int64_t nano(struct fixture *f, const char *text)
{
    struct check c = {.arena = &f->arena, .errors = &f->errors};
    return (int64_t)quantity_of(&c, json_node_new_text(&f->arena, slice_from_text(text)));
}

static void quantities_are_read_in_every_form(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(nano(f, "1"), 1000000000);
    assert_int_equal(nano(f, "-1.5"), -1500000000);
    assert_int_equal(nano(f, "100m"), 100000000);
    assert_int_equal(nano(f, "1n"), 1);
    assert_int_equal(nano(f, "0.1n"), 1); /* rounded up */
    assert_int_equal(nano(f, "1k"), 1000000000000);
    assert_int_equal(nano(f, "1Ki"), 1024000000000);
    assert_int_equal(nano(f, "12e-1"), 1200000000);
    assert_int_equal(nano(f, "1E2"), 100000000000);
    assert_int_equal(nano(f, ""), 0);
}

static void huge_quantities_are_limited(void **state)
{
    struct fixture *f = *state;
    struct check c = {.arena = &f->arena, .errors = &f->errors};
    static const char *const texts[] = {"1e999", "999999999999999999999999999999999999999999999999",
                                        "9999999999Ei", "99999E"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        quantity value = quantity_of(&c, json_node_new_text(&f->arena, slice_from_text(texts[i])));
        assert_int_equal(quantity_units(value), INT64_MAX);
    }
}

static void assert_shown(struct fixture *f, const char *given, const char *shown)
{
    struct check c = {.arena = &f->arena, .errors = &f->errors};
    char text[64];
    struct slice is = quantity_text(&c, json_node_new_text(&f->arena, slice_from_text(given)));
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(is));
    assert_string_equal(text, shown);
}

static void quantities_are_shown_in_canonical_form(void **state)
{
    struct fixture *f = *state;
    assert_shown(f, "1.5", "1500m");
    assert_shown(f, "1000m", "1");
    assert_shown(f, "2000", "2k");
    assert_shown(f, "1.5Gi", "1536Mi");
    assert_shown(f, "-1", "-1");
    assert_shown(f, "0", "0");
}

static bool is_valid(name_rule rule, const char *text)
{
    char why[NAME_ERROR_BYTES];
    return rule(slice_from_text(text), why);
}

static void names_and_addresses_are_checked(void **state)
{
    (void)state;
    assert_true(is_valid(port_name_valid, "http"));
    assert_false(is_valid(port_name_valid, "80"));
    assert_false(is_valid(port_name_valid, "a--b"));
    assert_false(is_valid(port_name_valid, ""));
    assert_true(is_valid(wildcard_valid, "*.a.b"));
    assert_false(is_valid(wildcard_valid, "*"));
    assert_false(is_valid(dns_1035_valid, "1a"));
    assert_true(is_valid(ip_valid, "::1"));
    assert_false(is_valid(ip_valid, "::ffff:1.2.3.4"));
    assert_false(is_valid(ip_valid, "01.2.3.4"));
    assert_true(is_valid(cidr_valid, "10.0.0.0/8"));
    assert_false(is_valid(cidr_valid, "10.0.0.1/8"));
    assert_false(is_valid(cidr_valid, "::/129"));
    assert_false(is_valid(cidr_valid, "10.0.0.0/"));
}

static void kinds_are_in_order(void **state)
{
    (void)state;
    kube_validate_check();
}

static void external_names_may_end_with_a_dot(void **state)
{
    struct fixture *f = *state;
    const struct kube_kind *services = kind_of("", "v1", "services");
    assert_true(validate(f, services,
                         "{\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.b.\"}}", NULL));
    assert_false(validate(f, services,
                          "{\"spec\":{\"type\":\"ExternalName\",\"externalName\":\".\"}}", NULL));
    assert_error(f->errors.first, "spec.externalName", "Required value");
}

/* The first error that a webhook with this URL has. */
static void assert_url(struct fixture *f, const char *url, const char *message)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"webhooks\":[{\"name\":\"a.b.c\",\"sideEffects\":\"None\","
             "\"admissionReviewVersions\":[\"v1\"],\"clientConfig\":{\"url\":\"%s\"}}]}",
             url);
    bool fine = validate(
        f, kind_of("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"), json,
        NULL);
    assert_true(fine == !message);
    if (message)
        assert_error(f->errors.first, "webhooks[0].clientConfig.url", message);
}

static void urls_of_webhooks_are_read_as_by_go(void **state)
{
    struct fixture *f = *state;
    assert_url(f, "https://[::1]:80/a", NULL);
    assert_url(f, "https://a/%zz",
               "Required value: url must be a valid URL: parse \"https://a/%zz\": invalid URL "
               "escape \"%zz\"; desired format: https://host[/path]");
    assert_url(f, "https://a:b",
               "Required value: url must be a valid URL: parse \"https://a:b\": invalid port "
               "\":b\" after host; desired format: https://host[/path]");
    assert_url(f, "https://u:p@x@a?b@c",
               "Invalid value: \"u:p@x\": user information is not permitted in the URL");
    assert_url(f, "https://u@",
               "Invalid value: \"\": host must be specified; desired format: https://host[/path]");
    assert_url(f, "https://a#b%20c",
               "Invalid value: \"b c\": fragments are not permitted in the URL");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(kinds_are_in_order),
        TEST(external_names_may_end_with_a_dot),
        TEST(errors_have_kubernetes_texts_in_its_order),
        TEST(valid_and_unknown_objects_pass),
        TEST(immutable_fields_are_compared_with_the_old_object),
        TEST(generated_selectors_are_not_contradicted),
        TEST(pods_without_account_have_no_token),
        TEST(approvals_have_the_rules_of_a_status),
        TEST(pods_keep_their_spec),
        TEST(volumes_of_claims_may_be_mounted),
        TEST(large_lists_take_bounded_time),
        TEST(errors_show_a_bounded_part_of_a_value),
        TEST(quantities_are_read_in_every_form),
        TEST(huge_quantities_are_limited),
        TEST(quantities_are_shown_in_canonical_form),
        TEST(names_and_addresses_are_checked),
        TEST(urls_of_webhooks_are_read_as_by_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
