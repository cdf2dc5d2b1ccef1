/* Discovery of a real server. */
#include "suite.h"

static void resources_are_discovered(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_resource found;
    CHECK(vigil_kube_find_resource(kube, "pods", &found) == VIGIL_ERROR_UNAVAILABLE);
    EXPECT(vigil_kube_discover(kube), VIGIL_OK);
    CHECK(vigil_kube_find_resource(kube, "cm", &found) == VIGIL_OK);
    CHECK(strcmp(found.resource, "configmaps") == 0 && strcmp(found.kind, "ConfigMap") == 0);
    CHECK(strcmp(found.group, "") == 0 && strcmp(found.version, "v1") == 0);
    CHECK(found.namespaced && strcmp(found.singular, "configmap") == 0);
    CHECK((found.verbs & VIGIL_KUBE_VERB_WATCH) && (found.verbs & VIGIL_KUBE_VERB_PATCH));
    vigil_kube_target target = vigil_kube_resource_target(&found, vigil_kube_namespace(kube));
    EXPECT(vigil_kube_list(kube, &target, NULL), VIGIL_OK);
    CHECK(vigil_kube_find_resource(kube, "deployments.apps", &found) == VIGIL_OK);
    CHECK(strcmp(found.group, "apps") == 0);
    CHECK(vigil_kube_find_resource(kube, "Deployment.v1.apps", &found) == VIGIL_OK);
    CHECK(vigil_kube_find_resource(kube, "namespaces", &found) == VIGIL_OK && !found.namespaced);
    CHECK(vigil_kube_find_resource(kube, "unknown", &found) == VIGIL_ERROR_SERVER);
    vigil_kube_free(kube);
}

const struct suite_test discovery_tests[] = {
    {"resources_are_discovered", resources_are_discovered},
    {NULL, NULL},
};
