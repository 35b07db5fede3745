"""Open the annotated model so that its nodes run where they were placed: `load.session()`.

Needs onnxruntime 1.27 or newer; older ones do not know the option and ignore it. Run as a script,
it says which execution provider got which nodes.
"""

import json
from pathlib import Path

import onnxruntime as ort

HERE = Path(__file__).resolve().parent


def session() -> ort.InferenceSession:
    settings = json.loads((HERE / "layers.json").read_text(encoding="utf-8"))
    options = ort.SessionOptions()
    for key, value in settings["session_options"].items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(
        str(HERE / settings["model"]), options, providers=settings["providers"]
    )


if __name__ == "__main__":
    made = session()
    for part in made.get_provider_graph_assignment_info():
        print(part.ep_name, *sorted(node.name for node in part.get_nodes()))
