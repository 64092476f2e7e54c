"""ViTPose answers with a map of heat for each point of a body."""

from __future__ import annotations

from modelwright.stages.export._family import ModelFamily

FAMILY = ModelFamily(
    classes={"keypoint-detection": "VitPoseForPoseEstimation"}, answers=lambda output: {"heatmaps": output.heatmaps}
)
