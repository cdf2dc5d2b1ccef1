/* Informers and their handlers with a server on a simulated network. */
#include "kubeclient/informer/informer.h"

#include "kubeclient/data/objects_test.h"
#include "kubeclient/informer/collection_sim_test.h"

static struct kube_world world;
static struct collection collection;

static void begin(enum sim_protocol protocol)
{
    kube_world_init(&world, protocol, NULL);
    collection_init(&collection, &world, 1);
    for (int name = 0; name < 5; name++)
        collection_put(&collection, name);
    assert_true(kube_world_start(&world));
}

static vigil_kube_informer *informer_of_pods(void)
{
    vigil_kube_informer *informer;
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
    return informer;
}

static void copy_follows_the_server(void **state)
{
    (void)state;
    begin(SIM_HTTP2);
    vigil_kube_informer *informer = informer_of_pods();
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    assert_int_equal(vigil_kube_informer_has_synced(informer), 0);
    KUBE_WORLD_RUN_UNTIL(&world, vigil_kube_informer_has_synced(informer));
    assert_int_equal(vigil_kube_informer_has_synced(informer), 1);
    vigil_kube_objects objects;
    assert_int_equal(vigil_kube_informer_list(informer, &objects), VIGIL_OK);
    assert_int_equal(objects.count, 5);
    vigil_kube_objects_free(&objects);
    vigil_kube_informer_free(informer);
    kube_world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_follows_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
