module vigil/bench/clients/webhook

go 1.26.0
