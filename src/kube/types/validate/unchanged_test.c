/* Updates of random parts of objects: what is not checked again, because the stored object has it
 * already, must not hide an error. */
#include "kube/types/validate/validate.h"

#include "base/random.h"
#include "kube/types/validate/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20, UPDATES = 250, CHANGES_MAX = 3 };

#define IMAGE "'image':'registry.example/app:1.0'"
#define PROBES                                                                                \
    "'livenessProbe':{'httpGet':{'port':80}},'readinessProbe':{'grpc':{'port':90}},"          \
    "'startupProbe':{'tcpSocket':{'port':'http'},'periodSeconds':0,'failureThreshold':7},"    \
    "'lifecycle':{'postStart':{'httpGet':{'port':8,'path':'/x','scheme':'HTTP'}},'preStop':{" \
    "'sleep':{'seconds':3}}}"
#define ENVIRONMENT                                                                     \
    "'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},"       \
    "{'name':'B','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu'}}},"          \
    "{'name':'C','valueFrom':{'configMapKeyRef':{'name':'m','key':'k'}}},"              \
    "{'name':'E','value':''}],'envFrom':[{'configMapRef':{'name':'m'}},{'secretRef':{'" \
    "name':'s'},'prefix':''}]"
#define RESOURCES                                                                         \
    "'resources':{'limits':{'cpu':'1','memory':'1Gi','hugepages-2Mi':'4Mi'},'requests':{" \
    "'cpu':'100m','hugepages-2Mi':'4Mi'},'claims':[{'name':'r'}]},'resizePolicy':[{"      \
    "'resourceName':'cpu','restartPolicy':'NotRequired'}]"
#define PORTS                                                                               \
    "'ports':[{'containerPort':80,'name':'http','hostPort':8080},{'containerPort':53,"      \
    "'protocol':'UDP'}],'volumeMounts':[{'name':'empty','mountPath':'/m'},{'name':'secret'" \
    ",'mountPath':'/n','readOnly':true,'subPath':'a'}],'securityContext':{'capabilities':{" \
    "'add':['NET_ADMIN']},'runAsUser':1}"
#define CONTAINERS                                                                             \
    "'containers':[{'name':'c'," IMAGE "," PORTS "," PROBES "," ENVIRONMENT "," RESOURCES      \
    "},{'name':'d'," IMAGE ",'resources':{'limits':{'cpu':2,'example.com/x':'3'}}},"           \
    "{'name':'e'," IMAGE ",'terminationMessagePolicy':'File'}],"                               \
    "'initContainers':[{'name':'i'," IMAGE "," ENVIRONMENT ",'ports':[{'containerPort':81}]}," \
    "{'name':'s'," IMAGE ",'restartPolicy':'Always','startupProbe':{'httpGet':{'port':1}}}]"
#define VOLUMES                                                                                \
    "'volumes':[{'name':'empty','emptyDir':{}},{'name':'secret','secret':{'secretName':'s'}}," \
    "{'name':'claim','persistentVolumeClaim':{'claimName':'c'}},{'name':'all','projected':{'"  \
    "sources':[{'secret':{'name':'s'}},{'serviceAccountToken':{'path':'t'}}]}}]"
#define SCHEDULING                                                                             \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"           \
    "'nodeSelectorTerms':[{'matchExpressions':[{'key':'k','operator':'Exists'}]}]}}},"         \
    "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'k','whenUnsatisfiable':"         \
    "'DoNotSchedule','labelSelector':{'matchLabels':{'app':'a'}}}],'tolerations':[{'key':'k'," \
    "'operator':'Exists'}],'nodeSelector':{'disk':'ssd'}"
#define POD(restart)                                                                           \
    "{" CONTAINERS "," VOLUMES "," SCHEDULING ",'securityContext':{'runAsUser':5,'sysctls':[{" \
    "'name':'a.b','value':'1'}]},'dnsConfig':{'nameservers':['1.1.1.1'],'searches':['a.b']},"  \
    "'hostAliases':[{'ip':'1.2.3.4','hostnames':['h']}],'readinessGates':[{'conditionType':"   \
    "'x/y'}],'serviceAccountName':'default','resourceClaims':[{'name':'r'}],'dnsPolicy':"      \
    "'ClusterFirst','terminationGracePeriodSeconds':30,'restartPolicy':'" restart "'"
#define META "'metadata':{'name':'n','labels':{'app':'a'},'annotations':{'a/b':'c'}}"
#define TEMPLATE(restart) "'template':{'metadata':{'labels':{'app':'a'}},'spec':" POD(restart) "}}"
#define SELECTOR "'selector':{'matchLabels':{'app':'a'}}"
#define CLAIM "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}"

static const struct sample {
    const char *group, *version, *plural, *json;
} samples[] = {
    {"", "v1", "pods", "{" META ",'spec':" POD("Always") ",'activeDeadlineSeconds':60}}"},
    {"", "v1", "pods", "{" META ",'spec':" POD("Always") ",'schedulingGates':[{'name':'g'}]}}"},
    {"", "v1", "pods", "{" META ",'spec':" POD("Always") ",'hostUsers':false}}"},
    {"", "v1", "podtemplates", "{" META "," TEMPLATE("Always") "}"},
    {"", "v1", "replicationcontrollers",
     "{" META ",'spec':{'replicas':2,'selector':{'app':'a'}," TEMPLATE("Always") "}}"},
    {"apps", "v1", "deployments",
     "{" META ",'spec':{'replicas':2,'minReadySeconds':1,'progressDeadlineSeconds':9,'strategy':{"
     "'type':'RollingUpdate','rollingUpdate':{'maxSurge':1,'maxUnavailable':'25%'}}," SELECTOR
     "," TEMPLATE("Always") "}}"},
    {"apps", "v1", "replicasets",
     "{" META ",'spec':{'replicas':2," SELECTOR "," TEMPLATE("Always") "}}"},
    {"apps", "v1", "daemonsets",
     "{" META ",'spec':{'updateStrategy':{'type':'OnDelete'}," SELECTOR
     "," TEMPLATE("Always") "}}"},
    {"apps", "v1", "statefulsets",
     "{" META ",'spec':{'replicas':2,'serviceName':'s','volumeClaimTemplates':[{'metadata':{"
     "'name':'data'}," CLAIM "}]," SELECTOR "," TEMPLATE("Always") "}}"},
    {"apps", "v1", "statefulsets",
     "{" META ",'spec':{'podManagementPolicy':'Parallel'," SELECTOR "," TEMPLATE("Always") "}}"},
    {"batch", "v1", "jobs",
     "{" META ",'spec':{'completions':3,'parallelism':2,'completionMode':'Indexed','suspend':true,"
     "'backoffLimitPerIndex':1,'manualSelector':true," SELECTOR "," TEMPLATE("Never") "}}"},
    {"batch", "v1", "cronjobs",
     "{" META ",'spec':{'schedule':'* * * * *','concurrencyPolicy':'Forbid','jobTemplate':{'spec':{"
     "'completions':3," TEMPLATE("Never") "}}}}"},
    {"", "v1", "services",
     "{" META ",'spec':{'type':'NodePort','clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9'],"
     "'ipFamilies':['IPv4'],'ports':[{'name':'a','port':80,'targetPort':'x','protocol':'TCP',"
     "'nodePort':30000},{'name':'b','port':81,'protocol':'TCP','targetPort':81}],"
     "'sessionAffinity':'ClientIP','sessionAffinityConfig':{'clientIP':{'timeoutSeconds':5}},"
     "'externalIPs':['1.2.3.4'],'selector':{'a':'b'}}}"},
    {"", "v1", "configmaps", "{" META ",'data':{'a':'b','c':''},'immutable':true}"},
    {"", "v1", "secrets",
     "{'metadata':{'name':'n','annotations':{'kubernetes.io/service-account.name':'x'}},"
     "'type':'kubernetes.io/service-account-token','data':{'a':'YQ=='}}"},
    {"", "v1", "nodes",
     "{" META ",'spec':{'podCIDRs':['10.0.0.0/24'],'providerID':'p','taints':[{'key':'k','effect':"
     "'NoSchedule'}]},'status':{'capacity':{'cpu':'1','pods':'10'}}}"},
    {"", "v1", "persistentvolumeclaims", "{" META "," CLAIM ",'status':{'phase':'Bound'}}"},
    {"", "v1", "persistentvolumes",
     "{" META ",'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'],'nfs':{"
     "'server':'s','path':'/p'}}}"},
    {"", "v1", "resourcequotas",
     "{" META ",'spec':{'hard':{'pods':'10'},'scopes':['BestEffort']}}"},
    {"", "v1", "limitranges",
     "{" META ",'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'cpu':'100m'}}]}}"},
    {"", "v1", "endpoints",
     "{" META ",'subsets':[{'addresses':[{'ip':'1.2.3.4'}],'ports':[{'port':80}]}]}"},
    {"discovery.k8s.io", "v1", "endpointslices",
     "{" META ",'addressType':'IPv4','endpoints':[{'addresses':['1.2.3.4']}],'ports':[{'name':'',"
     "'port':80,'protocol':'TCP'}]}"},
    {"autoscaling", "v2", "horizontalpodautoscalers",
     "{" META ",'spec':{'maxReplicas':3,'minReplicas':1,'scaleTargetRef':{'kind':'Deployment',"
     "'name':'d','apiVersion':'apps/v1'},'metrics':[{'type':'Resource','resource':{'name':'cpu',"
     "'target':{'type':'Utilization','averageUtilization':50}}}]}}"},
    {"networking.k8s.io", "v1", "ingresses",
     "{" META ",'spec':{'ingressClassName':'c','rules':[{'host':'h.example','http':{'paths':[{"
     "'path':'/','pathType':'Prefix','backend':{'service':{'name':'s','port':{'number':80}}}}]}}"
     "]}}"},
    {"networking.k8s.io", "v1", "networkpolicies",
     "{" META ",'spec':{'podSelector':{'matchLabels':{'a':'b'}},'policyTypes':['Ingress'],"
     "'ingress':[{'ports':[{'port':80,'protocol':'TCP'}],'from':[{'ipBlock':{'cidr':"
     "'10.0.0.0/8'}}]}]}}"},
    {"networking.k8s.io", "v1", "ingressclasses", "{" META ",'spec':{'controller':'a.b/c'}}"},
    {"policy", "v1", "poddisruptionbudgets",
     "{" META ",'spec':{'minAvailable':'50%','selector':{'matchLabels':{'a':'b'}}}}"},
    {"coordination.k8s.io", "v1", "leases",
     "{" META ",'spec':{'leaseDurationSeconds':1,'leaseTransitions':2}}"},
    {"scheduling.k8s.io", "v1", "priorityclasses", "{" META ",'value':5}"},
    {"storage.k8s.io", "v1", "storageclasses", "{" META ",'provisioner':'a.b/p'}"},
    {"rbac.authorization.k8s.io", "v1", "clusterroles",
     "{" META ",'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]}"},
    {"rbac.authorization.k8s.io", "v1", "rolebindings",
     "{" META ",'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'r'},"
     "'subjects':[{'kind':'ServiceAccount','name':'s'}]}"},
};

struct fixture {
    struct arena arena;
    struct random random;
    const struct kube_kind *kind;
    size_t found, same; /* updates with and without errors */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    random_init(&f->random, 17);
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

static struct json_node *read_sample(struct fixture *f, const struct sample *sample)
{
    struct json_node *root;
    struct error error;
    struct slice text;
    assert_int_equal(arena_dup(&f->arena, slice_from_text(sample->json), &text), ST_OK);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\'')
            ((uint8_t *)(uintptr_t)text.ptr)[i] = '"';
    assert_int_equal(json_tree_read(&f->arena, text, &root, &error), ST_OK);
    f->kind = kube_builtin_find(slice_from_text(sample->group), slice_from_text(sample->version),
                                slice_from_text(sample->plural));
    assert_non_null(f->kind);
    return root;
}

/* -- Changes -- */

static size_t count_nodes(const struct json_node *node)
{
    size_t count = 1;
    for (const struct json_node *child = node->first; child; child = child->next)
        count += count_nodes(child);
    return count;
}

static struct json_node *node_at(struct json_node *node, size_t *left)
{
    if (!*left)
        return node;
    --*left;
    for (struct json_node *child = json_node_first(node); child; child = json_node_next(child)) {
        struct json_node *found = node_at(child, left);
        if (found)
            return found;
    }
    return NULL;
}

/* Any but the root. */
static struct json_node *any_node(struct fixture *f, struct json_node *root)
{
    size_t at = 1 + random_below(&f->random, count_nodes(root) - 1);
    return node_at(root, &at);
}

static void set_value(struct fixture *f, struct json_node *node)
{
    static const char *const texts[] = {
        "",       "a",   "c",     "d",      "e",    "-bad-",  "Never",    "1Gi", "100m", "-1",
        "10.0.0", "x y", "empty", "Always", "data", "secret", "a.b/../c", "UDP", "None", "http"};
    static const char *const numbers[] = {"0", "1", "-1", "2", "53", "80", "8080", "70000"};
    if (node->type == JSON_TYPE_BOOL)
        node->truth = !node->truth;
    if (node->type == JSON_TYPE_NUMBER)
        node->text = slice_from_text(numbers[random_below(&f->random, COUNT_OF(numbers))]);
    if (node->type != JSON_TYPE_STRING)
        return;
    node->text = slice_from_text(texts[random_below(&f->random, COUNT_OF(texts))]);
    node->verbatim = true;
    node->escaped = false;
}

static void replace_by(struct fixture *f, struct json_node *node, const struct json_node *other)
{
    struct json_node *parent = (struct json_node *)(uintptr_t)node->parent;
    struct json_node *copy = json_node_copy(&f->arena, other);
    assert_non_null(copy);
    if (parent->type == JSON_TYPE_OBJECT) {
        assert_int_equal(json_node_set(&f->arena, parent, node->key, copy), ST_OK);
        return;
    }
    assert_int_equal(json_node_insert(parent, node, copy), ST_OK);
    if (random_chance(&f->random, 1, 2))
        json_node_remove(parent, node);
}

/* Keeps the types of values, which are checked before the rules. */
static void change(struct fixture *f, struct json_node *root)
{
    if (!root->first)
        return; /* an earlier change has removed everything */
    struct json_node *node = any_node(f, root), *other = any_node(f, root);
    struct json_node *parent = (struct json_node *)(uintptr_t)node->parent;
    bool item = parent->type == JSON_TYPE_ARRAY;
    switch (random_below(&f->random, 8)) {
    case 0:
        json_node_remove(parent, node);
        break;
    case 1:
        if (item)
            replace_by(f, node, parent->first);
        break;
    case 2:
        if (!node->first && !other->first && other->type == node->type)
            replace_by(f, node, other);
        break;
    default:
        /* Most nodes are inside of containers, so that one changes and others do not. */
        for (int tries = 0; node->first && tries < 8; tries++)
            node = any_node(f, root);
        set_value(f, node);
        break;
    }
}

/* -- Comparing -- */

static void assert_same_errors(const struct kube_field_errors *a, const struct kube_field_errors *b)
{
    const struct kube_field_error *x = a->first, *y = b->first;
    assert_int_equal(a->count, b->count);
    for (; x && y; x = x->next, y = y->next) {
        assert_true(slice_equal(x->field, y->field));
        assert_true(slice_equal(x->message, y->message));
    }
}

/* Whether the update is valid. */
static bool compare(struct fixture *f, const struct json_node *object, const struct json_node *old)
{
    struct kube_field_errors some = {.arena = &f->arena}, all = {.arena = &f->arena};
    bool valid = kube_validate(&f->arena, f->kind, object, old, KUBE_VALIDATE_OBJECT, false, &some);
    assert_int_equal(kube_validate_all(&f->arena, f->kind, object, old, KUBE_VALIDATE_OBJECT, &all),
                     valid);
    assert_same_errors(&some, &all);
    return valid;
}

static void update_often(struct fixture *f, struct json_node *old)
{
    for (int i = 0; i < UPDATES; i++) {
        struct json_node *object = json_node_copy(&f->arena, old);
        int64_t changes = random_between(&f->random, 0, CHANGES_MAX);
        assert_non_null(object);
        while (changes--)
            change(f, object);
        bool valid = compare(f, object, old);
        f->found += !valid;
        f->same += valid;
        /* What was accepted is stored, and then the next update is compared with it. */
        if (valid && random_chance(&f->random, 1, 4))
            old = object;
    }
}

static void errors_are_the_same_if_only_changes_are_checked(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        arena_init(&f->arena, NULL, 0, ARENA_BYTES);
        struct json_node *object = read_sample(f, &samples[i]);
        if (!compare(f, object, NULL) || !compare(f, object, object))
            fail_msg("sample %zu is not valid", i);
        update_often(f, object);
        arena_fini(&f->arena);
    }
    assert_true(f->found > COUNT_OF(samples) * UPDATES / 8);
    assert_true(f->same > COUNT_OF(samples) * UPDATES / 8);
}

static void what_was_stored_before_there_were_rules_may_stay(void **state)
{
    static const struct sample bad = {
        "", "v1", "pods", "{'metadata':{},'spec':{'containers':[{'name':'-','image':'i'}]}}"};
    struct fixture *f = *state;
    struct kube_field_errors errors = {.arena = &f->arena};
    arena_init(&f->arena, NULL, 0, ARENA_BYTES);
    struct json_node *old = read_sample(f, &bad), *object = read_sample(f, &bad);
    json_node_remove(object, json_node_named(object, "metadata"));
    assert_int_equal(json_node_set(&f->arena, object, SLICE_LITERAL("metadata"),
                                   json_node_new(&f->arena, JSON_TYPE_OBJECT)),
                     ST_OK);
    assert_true(
        kube_validate(&f->arena, f->kind, object, old, KUBE_VALIDATE_OBJECT, false, &errors));
    assert_false(kube_validate_all(&f->arena, f->kind, object, old, KUBE_VALIDATE_OBJECT, &errors));
    arena_fini(&f->arena);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(errors_are_the_same_if_only_changes_are_checked),
        TEST(what_was_stored_before_there_were_rules_may_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
