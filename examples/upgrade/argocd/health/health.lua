-- The health of a CRDMigration, a ControllerRevisionUpgrade, its trigger, and a ManagedClusterMigration, for Argo CD.
local health = {status = "Progressing", message = "The manager of Godwit has not written a status yet."}
if obj.spec ~= nil and obj.spec.suspend == true then
  return {status = "Suspended", message = "spec.suspend is true; set it to false to resume"}
end
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.metadata.generation ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "The status is of an older spec."
  return health
end
-- Exactly one of the conditions is True: Ready, Reconciling or Stalled.
local statuses = {Ready = "Healthy", Reconciling = "Progressing", Stalled = "Degraded"}
for _, condition in ipairs(obj.status.conditions) do
  if condition.status == "True" and statuses[condition.type] ~= nil then
    health.status = statuses[condition.type]
    health.message = condition.reason .. ": " .. (condition.message or "")
  end
end
return health
