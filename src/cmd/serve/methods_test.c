/* Every method that the server answers has a row in the table of required rights. */
#include "auth/method.h"
#include "etcd/peer_calls_test.h"
#include "wire/grpc/service.h"

static void every_served_method_has_its_required_rights(void **state)
{
    (void)state;
    static const struct etcd_config config = {.version = "3.7.0",
                                              .cluster_version = "3.7.0",
                                              .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
                                              .request_bytes_max = 64 * 1024,
                                              .member_name = "default"};
    const struct fake_options options = {.seed = 1, .inline_percent = 100};
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    peer_init(p, &config, &options, 1 << 30, 0);
    size_t count;
    const struct grpc_row *rows = grpc_services_rows(etcd_api_services(p->api), &count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        if (!auth_method_find(rows[i].path))
            fail_msg("%.*s has no row", SLICE_ARGS(rows[i].path));
    }
    peer_fini(p);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_served_method_has_its_required_rights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
