# The installed headers of the library.
target_include_directories(vigil_kubeclient PUBLIC ${CMAKE_SOURCE_DIR}/include)

# One test per line, so that additions do not conflict.
vigil_failing_memory(
    kubeclient_call_configuration_test
    kubeclient_discovery_discovery_test
    kubeclient_call_rate_limiter_test
    kubeclient_call_warning_test
    kubeclient_connect_credentials_plugin_test
    kubeclient_connect_credentials_test
    kubeclient_connect_exec_credential_test
    kubeclient_connect_exec_plugin_test
    kubeclient_connect_kubeconfig_test
    kubeclient_data_edit_test
    kubeclient_data_list_reader_test
    kubeclient_data_protobuf_test
    kubeclient_data_received_event_test
    kubeclient_informer_cache_test
    kubeclient_informer_indexer_test
    kubeclient_informer_change_queue_test
    kubeclient_watch_watch_query_test
)

# The same, and the loop of a pool is observed (src/client/sim/faulty_sim_test.h).
foreach(test
    call_call
    call_call_life
    call_discover
    call_exchange
    call_kube
    call_list_each
    call_request_cases
    informer_handler
    informer_informer
    informer_informer_faults
    informer_informer_protobuf
    informer_reflector_cases
    leader_candidate
    watch_kube_watch
    watch_retry_watch
    watch_watch_fault
    watch_watch_request
)
    vigil_failing_memory(kubeclient_${test}_test)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options kubeclient_${test}_test PRIVATE
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system)")
endforeach()

vigil_corpus(kubeclient event)
vigil_corpus(kubeclient json)
vigil_corpus(kubeclient list)
vigil_corpus(kubeclient protobuf)
