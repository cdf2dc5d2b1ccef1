/* The handlers of reads, one file each; each answers its call, now or later. */
#ifndef VIGIL_KUBE_HANDLERS_READ_READ_H
#define VIGIL_KUBE_HANDLERS_READ_READ_H

struct kube_call;
struct list;

void kube_get(struct kube_call *call);
void kube_list(struct kube_call *call);
void kube_watch(struct kube_call *call);
/* For kube_watches_init. */
void kube_watch_check_access(struct list *in_api);
/* Answers a get or list of componentstatuses. */
void kube_components(struct kube_call *call);

#endif
