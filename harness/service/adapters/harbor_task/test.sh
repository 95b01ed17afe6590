#!/bin/bash
exec python3 -m harness.service.adapters.harbor --candidate {solution} --problem /tests/{problem} \
    --language {language} --device {device} --output {logs}
