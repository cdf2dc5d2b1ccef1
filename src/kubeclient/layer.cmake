# The installed headers of the library.
target_include_directories(vigil_kubeclient PUBLIC ${CMAKE_SOURCE_DIR}/include)

vigil_failing_memory(kubeclient_data_list_reader_test kubeclient_informer_indexer_test kubeclient_connect_kubeconfig_test kubeclient_informer_cache_test
                     kubeclient_informer_listener_test)

vigil_corpus(kubeclient event)
vigil_corpus(kubeclient json)
vigil_corpus(kubeclient list)
