vigil_corpus(etcd txn)
vigil_corpus(etcd v2_form)
