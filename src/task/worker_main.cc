// keel-worker: a worker of an orchestrator in another process, which starts it.
#include "keel/task/worker_main.h"

int main(int argc, char** argv) { return keel::task::RunWorker(argc, argv); }
